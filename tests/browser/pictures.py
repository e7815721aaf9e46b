"""The README's pictures of the workbench: `make pictures`.

JupyterLab with our notebooks, in the browser that is there -> PNG files beside the notebooks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.conftest import BROWSERS
from tests.browser.lab import Lab, Notebook

FOLDER = Path(__file__).parent.parent.parent / "notebooks" / "pictures"
SUMS = """\
%%avial -o deck --run --check --show=dag
avial.schedule %a, %b, %c, %d {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "sm_90"}
  %task1 = avial.task %cpu, %a, %b, %c {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %a[%i]
      %y = memref.load %b[%i]
      %z = arith.addi %x, %y
      memref.store %z, %c[%i]
    }
  }
  %task2 = avial.task %cpu, %a, %b, %d {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %a[%i]
      %y = memref.load %b[%i]
      %z = arith.muli %x, %y
      memref.store %z, %d[%i]
    }
  }
  %task3 = avial.task %gpu, %c, %d, %d {
    gpu.launch {
      %t = gpu.thread_id x
      %x = memref.load %c[%t]
      %y = memref.load %d[%t]
      %z = arith.addi %x, %y
      memref.store %z, %d[%t]
    }
  }
}"""
HEAT = """\
%%avial -o heat --ranks 2 --run --show=timeline -D steps=480
func.func @heat(%rod: memref<600000xf64>, %new: memref<600000xf64>, %steps: index) {
  %quarter = arith.constant 0.25 : f64
  %half = arith.constant 0.5 : f64
  affine.for %t = 0 to %steps {
    affine.for %i = 1 to 599999 {
      %l = affine.load %rod[%i - 1] : memref<600000xf64>
      %m = affine.load %rod[%i] : memref<600000xf64>
      %r = affine.load %rod[%i + 1] : memref<600000xf64>
      %s = arith.addf %l, %r : f64
      %q = arith.mulf %s, %quarter : f64
      %h = arith.mulf %m, %half : f64
      %n = arith.addf %q, %h : f64
      affine.store %n, %new[%i] : memref<600000xf64>
    }
    affine.for %i = 1 to 599999 {
      %n = affine.load %new[%i] : memref<600000xf64>
      affine.store %n, %rod[%i] : memref<600000xf64>
    }
  }
  return
}"""
CELLS = (
    "%load_ext avial_lab\nimport numpy as np\n"
    "a, b, c, d = (np.arange(20, dtype=np.int32) for _ in range(4))",
    "%avial cluster start --cpu=2 --gpu=1",
    SUMS,
    "%avial step deck --stage=mpi",
    "rod, new = np.random.default_rng(0).random((2, 600000))",
    HEAT,
)


def main() -> None:
    """Take the three of them."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lab = Lab(Path(folder))
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        try:
            page = browser.new_page(viewport={"width": 1500, "height": 1000})
            page.set_default_timeout(60_000)
            _take(lab, page)
        finally:
            browser.close()
            lab.stop()


def _take(lab: Lab, page: Page) -> None:
    notebook = Notebook(lab, page, lab.add("workbench", list(CELLS)))
    page.goto(lab.address(notebook.path))
    notebook.wait_until_ready()
    notebook.command("application:toggle-left-area")
    for number in range(len(CELLS)):
        notebook.run(number)
    graph = notebook.output(2).locator(".avial-graph").first
    graph.screenshot(path=FOLDER / "graph.png")
    stepper = notebook.output(3).locator(".avial-stepper")
    expect(stepper.get_by_text("arith").first).to_be_visible()  # it has been looked into
    stepper.locator(".avial-cell .avial-line").nth(8).click()
    expect(stepper.locator(".avial-texts .avial-marked").first).to_be_visible()
    stepper.screenshot(path=FOLDER / "stepper.png")
    timeline = notebook.output(5).locator(".avial-timeline")
    timeline.screenshot(path=FOLDER / "timeline.png")


if __name__ == "__main__":
    main()
