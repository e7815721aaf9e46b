"""`%avial cluster` with hosts, as a notebook on `login` has it: the magics, in an IPython there."""

from __future__ import annotations

import sys

from tests.hosts.rig import Rig, wait_until
from tests.hosts.test_runs import nothing_left

RUN = """
import numpy as np
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()

def cell(text):
    print("In:", text.splitlines()[0], flush=True)
    result = shell.run_cell(text)
    assert result.success, result.error_in_exec or result.error_before_exec

cell("%load_ext avial_lab")
cell("import avial_lab, numpy as np; a = np.random.default_rng(0).random((60, 50)); b = a.copy()")
"""

HEAT = '''
cell("""%%avial -o heat --run --check
func.func @heat(%a: memref<60x50xf64>, %b: memref<60x50xf64>) {
  affine.for %t = 0 to 5 {
    affine.for %i = 1 to 59 {
      affine.for %j = 0 to 50 {
        %p = affine.load %a[%i - 1, %j] : memref<60x50xf64>
        %q = affine.load %a[%i + 1, %j] : memref<60x50xf64>
        %s = arith.addf %p, %q : f64
        affine.store %s, %b[%i, %j] : memref<60x50xf64>
      }
    }
    affine.for %i = 1 to 59 {
      affine.for %j = 0 to 50 {
        %p = affine.load %b[%i, %j] : memref<60x50xf64>
        affine.store %p, %a[%i, %j] : memref<60x50xf64>
      }
    }
  }
  return
}""")
cell("nodes = avial_lab.cluster().topology.node_of")
cell("print('reference' in heat.check_report, heat.trace.ranks, nodes)")
cell("%avial cluster status")
'''


def session(rig: Rig, *lines: str, environment: dict[str, str] | None = None) -> str:
    """What those cells print, in one process of IPython."""
    script = RUN + HEAT.join(lines)
    process = rig.start(sys.executable, "-c", script, environment=environment)
    out, error = process.communicate(timeout=200)
    assert process.returncode == 0, (out, error)
    return out


def test_a_cluster_on_hosts_in_a_notebook(rig: Rig) -> None:
    out = session(
        rig, "cell('%avial cluster start --hosts node1,node2 --ppn 2')\n",
        "cell('%avial cluster stop')\n",
    )  # fmt: skip
    assert "True 4 ('node1', 'node1', 'node2', 'node2')" in out
    assert "4 CPUs on node1, node2" in out
    wait_until(lambda: nothing_left(rig), "the engines to be gone")


def test_a_cluster_that_is_kept_waits_for_the_next_notebook(rig: Rig) -> None:
    """`--keep`: the kernel ends, the engines stay; the next one connects and stops them."""
    session(rig, "cell('%avial cluster start --hosts node1,node2 --ppn 1 --keep 0.1')\n", "")
    listed = rig.lab("cluster", "list").stdout
    assert "2 engines on node1, node2" in listed
    out = session(rig, "cell('%avial cluster connect')\n", "cell('%avial cluster stop')\n")
    assert "True 2 ('node1', 'node2')" in out
    wait_until(lambda: nothing_left(rig), "the engines to be gone")
