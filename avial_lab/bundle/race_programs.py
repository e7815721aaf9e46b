"""What is raced on a GPU: texts whose outer loop does a number of turns.

Kind, element type, size, turns -> MLIR. `runtime/bare/peers.py` has the same in CuPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

MIB = 1 << 20


@dataclass(frozen=True)
class Race:
    """arrays: their numbers of dimensions by name, each of the same extent (0: one element).
    sweeps: how often a turn reads or writes all of an array. launches: of a turn. large: the extent
    with which an array takes 512 MiB, of f32 and of f64; small: for a rehearsal. turns: of the
    two programs. body: of a turn, the arrays and loops of each replicate. whole: the run is raced,
    with its copies in and out.
    """

    kind: str
    peer: str
    arrays: Mapping[str, int]
    sweeps: int
    launches: int
    large: int
    large_f64: int
    small: int
    turns: tuple[int, int]
    body: tuple[tuple[str, str], ...]
    whole: bool = False

    def text(self, element: str, size: int, turns: int) -> str:
        """The program for arrays of that size."""
        words = {"N": size, "M": size - 1, "T": element}
        kinds = {
            name: f"memref<{''.join(f'{extent}x' for extent in shape)}{element}>"
            for name, shape in self.shapes(size).items()
        }
        takes = ", ".join(f"%{name}: {kind}" for name, kind in kinds.items())
        typed = {f"{name}_": kind for name, kind in kinds.items()}
        replicates = ""
        for k, (names, nest) in enumerate(self.body):
            loops = Template(nest).substitute(words, **typed)
            replicates += f"    %r{k} = avial.replicate %cpu, {names} {{{loops}}}\n"
        loop = f"  %turns = avial.converge {turns} {{\n{replicates}  }}\n"
        target = '  %cpu = avial.target {arch = "cpu"}\n'
        return f"avial.schedule {takes} {{\n{target}{loop}}}\n"

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return {name: (size,) * dims or (1,) for name, dims in self.arrays.items()}


_AXPY = """
    affine.for %i = 0 to $N {
      %f = arith.constant 0.5 : $T
      %p = affine.load %x[%i] : $x_
      %q = affine.load %y[%i] : $y_
      %r = arith.mulf %f, %p : $T
      %s = arith.addf %r, %q : $T
      affine.store %s, %y[%i] : $y_
    }
  """

_SCALE = (
    (
        "%a, %b",
        """
    affine.for %i = 0 to $N {
      %f = arith.constant 0.5 : $T
      %p = affine.load %a[%i] : $a_
      %q = arith.mulf %f, %p : $T
      affine.store %q, %b[%i] : $b_
    }
  """,
    ),
    (
        "%b, %a",
        """
    affine.for %i = 0 to $N {
      %f = arith.constant 2.0 : $T
      %p = affine.load %b[%i] : $b_
      %q = arith.mulf %f, %p : $T
      affine.store %q, %a[%i] : $a_
    }
  """,
    ),
)

_EXP = """
    affine.for %i = 0 to $N {
      %p = affine.load %y[%i] : $y_
      %m = arith.negf %p : $T
      %q = arith.mulf %m, %p : $T
      %e = math.exp %q : $T
      affine.store %e, %y[%i] : $y_
    }
  """

_STEP = """
    affine.for %i = 1 to $M {
      affine.for %j = 1 to $M {
        %f = arith.constant 0.2 : $T
        %c = affine.load %{x}[%i, %j] : ${x}_
        %w = affine.load %{x}[%i, %j - 1] : ${x}_
        %e = affine.load %{x}[%i, %j + 1] : ${x}_
        %s = affine.load %{x}[%i + 1, %j] : ${x}_
        %n = affine.load %{x}[%i - 1, %j] : ${x}_
        %1 = arith.addf %c, %w : $T
        %2 = arith.addf %1, %e : $T
        %3 = arith.addf %2, %s : $T
        %4 = arith.addf %3, %n : $T
        %5 = arith.mulf %f, %4 : $T
        affine.store %5, %{y}[%i, %j] : ${y}_
      }
    }
  """

_STEP_3D = """
    affine.for %i = 1 to $M {
      affine.for %j = 1 to $M {
        affine.for %k = 1 to $M {
          %f = arith.constant 0.125 : $T
          %g = arith.constant 0.25 : $T
          %c = affine.load %{x}[%i, %j, %k] : ${x}_
          %w = affine.load %{x}[%i, %j, %k - 1] : ${x}_
          %e = affine.load %{x}[%i, %j, %k + 1] : ${x}_
          %n = affine.load %{x}[%i, %j - 1, %k] : ${x}_
          %s = affine.load %{x}[%i, %j + 1, %k] : ${x}_
          %u = affine.load %{x}[%i - 1, %j, %k] : ${x}_
          %d = affine.load %{x}[%i + 1, %j, %k] : ${x}_
          %1 = arith.addf %w, %e : $T
          %2 = arith.addf %1, %n : $T
          %3 = arith.addf %2, %s : $T
          %4 = arith.addf %3, %u : $T
          %5 = arith.addf %4, %d : $T
          %6 = arith.mulf %f, %5 : $T
          %7 = arith.mulf %g, %c : $T
          %8 = arith.addf %6, %7 : $T
          affine.store %8, %{y}[%i, %j, %k] : ${y}_
        }
      }
    }
  """

_SUM = """
    affine.for %i = 0 to $N {
      %z = arith.constant 0 : index
      %p = affine.load %x[%i] : $x_
      %q = affine.load %s[0] : $s_
      %r = arith.addf %q, %p : $T
      affine.store %r, %s[0] : $s_
    }
  """

_GEMM = """
    affine.for %i = 0 to $N {
      affine.for %j = 0 to $N {
        affine.for %k = 0 to $N {
          %p = affine.load %a[%i, %k] : $a_
          %q = affine.load %b[%k, %j] : $b_
          %r = affine.load %c[%i, %j] : $c_
          %s = arith.mulf %p, %q : $T
          %t = arith.addf %r, %s : $T
          affine.store %t, %c[%i, %j] : $c_
        }
      }
    }
  """

_HALVE = """
    affine.for %i = 0 to $N {
      %f = arith.constant 0.5 : $T
      %p = affine.load %y[%i] : $y_
      %q = arith.mulf %f, %p : $T
      affine.store %q, %y[%i] : $y_
    }
  """


def _both_ways(step: str) -> tuple[tuple[str, str], ...]:
    ways = (("a", "b"), ("b", "a"))
    return tuple((f"%{x}, %{y}", step.replace("{x}", x).replace("{y}", y)) for x, y in ways)


RACES = (
    Race("axpy", "ElementwiseKernel", {"x": 1, "y": 1}, 3, 1,
         128 * MIB, 64 * MIB, 4096, (600, 2), (("%x, %y", _AXPY),)),
    Race("scale", "ElementwiseKernel", {"a": 1, "b": 1}, 4, 2,
         128 * MIB, 64 * MIB, 4096, (300, 2), _SCALE),
    Race("jacobi", "RawKernel", {"a": 2, "b": 2}, 4, 2, 11584, 8192, 64, (300, 2),
         _both_ways(_STEP)),
    Race("jacobi-3d", "RawKernel", {"a": 3, "b": 3}, 4, 2, 512, 406, 20, (300, 2),
         _both_ways(_STEP_3D)),
    Race("sum", "cupy.sum (CUB)", {"x": 1, "s": 0}, 1, 1, 128 * MIB, 64 * MIB, 4096, (1000, 2),
         (("%x, %s", _SUM),)),
    Race("exp", "ElementwiseKernel", {"y": 1}, 2, 1, 128 * MIB, 64 * MIB, 4096, (600, 2),
         (("%y", _EXP),)),
    Race("steps", "RawKernel", {"a": 2, "b": 2}, 4, 2, 1300, 1300, 64, (500, 2),
         _both_ways(_STEP), whole=True),
    Race("launch", "RawKernel", {"y": 1}, 2, 1, 1024, 1024, 1024, (20000, 2000),
         (("%y", _HALVE),)),
    Race("gemm", "cupy.matmul (cuBLAS)", {"a": 2, "b": 2, "c": 2}, 4, 1, 2048, 2048, 32, (6, 1),
         (("%a, %b, %c", _GEMM),)),
)  # fmt: skip
"""In the order in which they are run: what the goals are about first."""
