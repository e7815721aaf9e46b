"""Whole programs: how tasks, views, temporaries, functions and scalars are put together."""

from __future__ import annotations

import numpy as np

from tests.differential.bodies import ints
from tests.differential.cases import Arrays, Case

CASES: dict[str, Case] = {}

_TARGETS = """
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "gpu"}"""


def _chain(m: Arrays) -> None:
    m["a"] += 7


_LINK = """
  %t{k} = avial.task {target}, %a {{
    %one = arith.constant 1 : i32
    scf.parallel %i = 0 to 33 {{
      %x = memref.load %a[%i]
      %y = arith.addi %x, %one
      memref.store %y, %a[%i]
    }}
  }}"""

CASES["a chain over CPU and GPU"] = Case(
    "avial.schedule %a {"
    + _TARGETS
    + "".join(_LINK.format(k=k, target=("%cpu", "%gpu")[k % 2]) for k in range(7))
    + "\n}\n",
    lambda rng: {"a": ints(rng, 33)},
    _chain,
)


def _fan(m: Arrays) -> None:
    for k in range(8):
        m["c"][k] = m["a"] * (k + 1)
    m["s"][:] = m["c"].sum(axis=0)


CASES["fan out to rows of one buffer, fan in"] = Case(
    'avial.schedule %a, %c, %s {\n  %cpu = avial.target {arch = "cpu"}'
    + "".join(
        f"""
  %t{k} = avial.task %cpu, %a, %c {{
    %f = arith.constant {k + 1} : i32
    %row = memref.subview %c[{k}, 0] [1, 11] [1, 1]
    scf.for %i = 0 to 11 {{
      %z = arith.constant 0 : index
      %x = memref.load %a[%i]
      %y = arith.muli %x, %f
      memref.store %y, %row[%z, %i]
    }}
  }}"""
        for k in range(8)
    )
    + """
  %sum = avial.task %cpu, %c, %s {
    %zero = arith.constant 0 : i32
    scf.parallel %i = 0 to 11 {
      %t = scf.for %k = 0 to 8 iter_args(%u = %zero) {
        %x = memref.load %c[%k, %i]
        %v = arith.addi %u, %x
        scf.yield %v
      }
      memref.store %t, %s[%i]
    }
  }
}
""",
    lambda rng: {"a": ints(rng, 11), "c": ints(rng, 8, 11), "s": ints(rng, 11)},
    _fan,
)


def _diamond(m: Arrays) -> None:
    m["b"][:, 0:3] = m["a"][:, 0:3] + 1
    m["b"][:, 3:7] = m["a"][:, 3:7] * 2
    m["a"][:] = m["b"][:, ::-1]


CASES["a diamond over column blocks"] = Case(
    """
avial.schedule %a, %b {
  %cpu = avial.target {arch = "cpu"}
  %left = avial.task %cpu, %a, %b {
    %one = arith.constant 1 : i32
    affine.parallel (%i, %j) = (0, 0) to (6, 3) {
      %x = affine.load %a[%i, %j]
      %y = arith.addi %x, %one
      affine.store %y, %b[%i, %j]
    }
  }
  %right = avial.task %cpu, %a, %b {
    affine.parallel (%i, %j) = (0, 3) to (6, 7) {
      %x = affine.load %a[%i, %j]
      %y = arith.addi %x, %x
      affine.store %y, %b[%i, %j]
    }
  }
  %join = avial.task %cpu, %a, %b {
    affine.parallel (%i, %j) = (0, 0) to (6, 7) {
      %x = affine.load %b[%i, 6 - %j]
      affine.store %x, %a[%i, %j]
    }
  }
}
""",
    lambda rng: {"a": ints(rng, 6, 7), "b": ints(rng, 6, 7)},
    _diamond,
)


def _perhaps(m: Arrays) -> None:
    m["c"][:] = m["a"]
    m["c"][m["a"] > 0] = 100
    m["c"][::3] = 200
    m["d"][:] = m["c"]


CASES["perhaps written, with the old values on another rank"] = Case(
    """
avial.schedule %a, %c, %d {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "gpu"}
  %old = avial.task %cpu, %a, %c { memref.copy %a, %c }
  %some = avial.task %gpu, %a, %c {
    gpu.launch {
      %i = gpu.thread_id x
      %x = memref.load %a[%i]
      %zero = arith.constant 0 : i32
      %hundred = arith.constant 100 : i32
      %up = arith.cmpi sgt, %x, %zero
      scf.if %up { memref.store %hundred, %c[%i] }
    }
  }
  %third = avial.task %cpu, %c {
    %k = arith.constant 200 : i32
    scf.for %i = 0 to 40 step 3 { memref.store %k, %c[%i] }
  }
  %out = avial.task %gpu, %c, %d { memref.copy %c, %d }
}
""",
    lambda rng: {"a": ints(rng, 40), "c": ints(rng, 40), "d": ints(rng, 40)},
    _perhaps,
)


def _temporaries(m: Arrays) -> None:
    m["c"][:] = m["a"] * 2 + 1
    m["d"][:] = m["a"] * 4


CASES["temporary buffers between tasks"] = Case(
    """
avial.schedule %a, %c, %d {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "gpu"}
  %one = arith.constant 1 : i32
  %t = memref.alloc() : memref<21xi32>
  %u = memref.alloc() : memref<3x7xi32>
  %first = avial.task %cpu, %a, %t {
    scf.parallel %i = 0 to 21 {
      %x = memref.load %a[%i]
      %y = arith.addi %x, %x
      memref.store %y, %t[%i]
    }
  }
  %second = avial.task %gpu, %t, %u {
    %flat = memref.collapse_shape %u [[0, 1]] : memref<3x7xi32> into memref<21xi32>
    memref.copy %t, %flat
  }
  %third = avial.task %cpu, %u, %c {
    %flat = memref.collapse_shape %u [[0, 1]] : memref<3x7xi32> into memref<21xi32>
    scf.parallel %i = 0 to 21 {
      %x = memref.load %flat[%i]
      %y = arith.addi %x, %one
      memref.store %y, %c[%i]
    }
  }
  %fourth = avial.task %cpu, %t, %d {
    scf.parallel %i = 0 to 21 {
      %x = memref.load %t[%i]
      %y = arith.addi %x, %x
      memref.store %y, %d[%i]
    }
  }
}
""",
    lambda rng: {"a": ints(rng, 21), "c": ints(rng, 21), "d": ints(rng, 21)},
    _temporaries,
)


def _views(m: Arrays) -> None:
    upper, lower = m["a"][:4], m["a"][4:]
    lower[:] = upper + 1
    m["a"][:, 2] = 9
    upper[:] = lower


CASES["views that several tasks share"] = Case(
    """
avial.schedule %a {
  %cpu = avial.target {arch = "cpu"}
  %upper = memref.subview %a[0, 0] [4, 5] [1, 1]
  %lower = memref.subview %a[4, 0] [4, 5] [1, 1]
  %column = memref.subview %a[0, 2] [8, 1] [1, 1]
  %t0 = avial.task %cpu, %upper, %lower {
    %one = arith.constant 1 : i32
    scf.parallel %i, %j = 0, 0 to 4, 5 {
      %x = memref.load %upper[%i, %j]
      %y = arith.addi %x, %one
      memref.store %y, %lower[%i, %j]
    }
  }
  %t1 = avial.task %cpu, %column {
    %nine = arith.constant 9 : i32
    linalg.fill ins(%nine) outs(%column)
  }
  %t2 = avial.task %cpu, %upper, %lower { memref.copy %lower, %upper }
}
""",
    lambda rng: {"a": ints(rng, 8, 5)},
    _views,
)


def _scaled(m: Arrays) -> None:
    m["c"][:42] = m["a"][:42] * np.float32(2.5)
    m["c"][42:] = -1


CASES["a func.func with scalars and a helper"] = Case(
    """
func.func private @scale(%x: f32, %f: f32) -> f32 {
  %y = arith.mulf %x, %f : f32
  return %y : f32
}

func.func @run(%a: memref<50xf32>, %n: index, %c: memref<50xf32>, %f: f32, %on: i1) {
  avial.schedule %a, %c, %n, %f, %on {
    %cpu = avial.target {arch = "cpu"}
    %t0 = avial.task %cpu, %a, %c {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      scf.for %i = %zero to %n step %one {
        %x = memref.load %a[%i] : memref<50xf32>
        %y = func.call @scale(%x, %f) : (f32, f32) -> f32
        memref.store %y, %c[%i] : memref<50xf32>
      }
    }
    %t1 = avial.task %cpu, %c {
      %end = arith.constant 50 : index
      %one = arith.constant 1 : index
      %minus = arith.constant -1.0 : f32
      scf.if %on {
        scf.for %i = %n to %end step %one { memref.store %minus, %c[%i] : memref<50xf32> }
      }
    }
  }
  return
}
""",
    lambda rng: {
        "a": rng.standard_normal(50).astype("float32"),
        "c": rng.standard_normal(50).astype("float32"),
    },
    _scaled,
    scalars={"n": 42, "f": 2.5, "on": True},
)


def _two_schedules(m: Arrays) -> None:
    m["b"][:] = m["a"] + 1
    m["c"][:] = m["b"] * 2


CASES["two schedules"] = Case(
    """
avial.schedule %a, %b {
  %cpu = avial.target {arch = "cpu"}
  %t0 = avial.task %cpu, %a, %b {
    %one = arith.constant 1 : i32
    scf.parallel %i = 0 to 10 {
      %x = memref.load %a[%i]
      %y = arith.addi %x, %one
      memref.store %y, %b[%i]
    }
  }
}
avial.schedule %b, %c {
  %gpu = avial.target {arch = "sm_90"}
  %t1 = avial.task %gpu, %b, %c {
    gpu.launch {
      %i = gpu.thread_id x
      %x = memref.load %b[%i]
      %y = arith.addi %x, %x
      memref.store %y, %c[%i]
    }
  }
}
""",
    lambda rng: {name: ints(rng, 10) for name in "abc"},
    _two_schedules,
)


def _generic(m: Arrays) -> None:
    m["b"][:] = m["a"] + 1
    m["a"][:] = m["b"]


CASES["MLIR's generic form"] = Case(
    """
"builtin.module"() ({
  "func.func"() <{function_type = (memref<10xi32>, memref<10xi32>) -> (), sym_name = "main"}> ({
  ^bb0(%a: memref<10xi32> loc("a"), %b: memref<10xi32> loc("b")):
    %ra = "builtin.unrealized_conversion_cast"(%a)
         : (memref<10xi32>) -> !avial.buffer_ref
    %rb = "builtin.unrealized_conversion_cast"(%b)
         : (memref<10xi32>) -> !avial.buffer_ref
    "avial.schedule"(%ra, %rb) ({
      %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
      %t = "avial.task"(%cpu, %ra, %rb) ({
        %zero = "arith.constant"() <{value = 0 : index}> : () -> index
        %ten = "arith.constant"() <{value = 10 : index}> : () -> index
        %step = "arith.constant"() <{value = 1 : index}> : () -> index
        %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
        "scf.for"(%zero, %ten, %step) ({
        ^bb0(%i: index):
          %x = "memref.load"(%a, %i) : (memref<10xi32>, index) -> i32
          %y = "arith.addi"(%x, %one) : (i32, i32) -> i32
          "memref.store"(%y, %b, %i) : (i32, memref<10xi32>, index) -> ()
          "scf.yield"() : () -> ()
        }) : (index, index, index) -> ()
        "omp.terminator"() : () -> ()
      }) {name = "t", operandSegmentSizes = array<i32: 1, 1, 1, 0>}
        : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      %u = "avial.task"(%cpu, %rb, %ra) ({
        "memref.copy"(%b, %a) : (memref<10xi32>, memref<10xi32>) -> ()
        "omp.terminator"() : () -> ()
      }) {name = "u", operandSegmentSizes = array<i32: 1, 1, 1, 0>}
        : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      "omp.terminator"() : () -> ()
    }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
""",
    lambda rng: {"a": ints(rng, 10), "b": ints(rng, 10)},
    _generic,
)


CASES["edges by hand, and a task without buffers"] = Case(
    """
avial.schedule %a, %b {
  %cpu = avial.target {arch = "cpu"}
  %t0 = avial.task %cpu, %a {
    %k = arith.constant 3 : i32
    linalg.fill ins(%k) outs(%a)
  }
  %idle = avial.task %cpu after %t0 { %k = arith.constant 3 : i32 }
  %t1 = avial.task %cpu, %b after %idle, %t0 {
    %k = arith.constant 4 : i32
    linalg.fill ins(%k) outs(%b)
  }
}
""",
    lambda rng: {"a": ints(rng, 10), "b": ints(rng, 4, 4)},
    lambda m: (m["a"].fill(3), m["b"].fill(4)),
)


def _declared(m: Arrays) -> None:
    m["b"][:] = m["a"] + m["c"][0]
    m["c"][0] = 5


CASES["roles written out"] = Case(
    """
avial.schedule %a, %b, %c {
  %cpu = avial.target {arch = "cpu"}
  %t0 = avial.task %cpu, reads(%a, %c) writes(%b) {
    %z = arith.constant 0 : index
    %k = memref.load %c[%z]
    scf.parallel %i = 0 to 10 {
      %x = memref.load %a[%i]
      %y = arith.addi %x, %k
      memref.store %y, %b[%i]
    }
  }
  %t1 = avial.task %cpu, writes(%c) {
    %z = arith.constant 0 : index
    %five = arith.constant 5 : i32
    memref.store %five, %c[%z]
  }
}
""",
    lambda rng: {"a": ints(rng, 10), "b": ints(rng, 10), "c": ints(rng, 2)},
    _declared,
)


def _game_of_life(m: Arrays) -> None:
    a, b = m["a"], m["b"]
    for _ in range(3):
        for source, dest in ((a, b), (b, a)):
            padded = np.pad(source, 1, mode="wrap")
            n = sum(
                padded[1 + i : 1 + i + source.shape[0], 1 + j : 1 + j + source.shape[1]]
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                if (i, j) != (0, 0)
            )
            dest[:] = (n == 3) | ((n == 2) & (source == 1))


def _life(k: int, source: str, dest: str) -> str:
    return f"""
  %t{k} = avial.task %{("cpu", "gpu")[k % 2]}, %{source}, %{dest} {{
    %zero = arith.constant 0 : i8
    %one = arith.constant 1 : i8
    %two = arith.constant 2 : i8
    %three = arith.constant 3 : i8
    %h = arith.constant 9 : index
    %w = arith.constant 8 : index
    scf.parallel %i, %j = 0, 0 to 9, 8 {{
      %n = scf.for %di = 0 to 3 iter_args(%s = %zero) {{
        %m = scf.for %dj = 0 to 3 iter_args(%t = %s) {{
          %i8_ = arith.constant 8 : index
          %j7_ = arith.constant 7 : index
          %p0 = arith.addi %i, %di
          %p1 = arith.addi %p0, %i8_
          %p = arith.remui %p1, %h
          %q0 = arith.addi %j, %dj
          %q1 = arith.addi %q0, %j7_
          %q = arith.remui %q1, %w
          %x = memref.load %{source}[%p, %q]
          %u = arith.addi %t, %x
          scf.yield %u
        }}
        scf.yield %m
      }}
      %me = memref.load %{source}[%i, %j]
      %n0 = arith.subi %n, %me
      %is3 = arith.cmpi eq, %n0, %three
      %is2 = arith.cmpi eq, %n0, %two
      %live = arith.cmpi eq, %me, %one
      %stay = arith.andi %is2, %live
      %on = arith.ori %is3, %stay
      %v = arith.select %on, %one, %zero
      memref.store %v, %{dest}[%i, %j]
    }}
  }}"""


CASES["a game of life between two ranks"] = Case(
    "avial.schedule %a, %b {"
    + _TARGETS
    + "".join(_life(k, *(("a", "b") if k % 2 == 0 else ("b", "a"))) for k in range(6))
    + "\n}\n",
    lambda rng: {
        "a": rng.integers(0, 2, (9, 8)).astype("int8"),
        "b": rng.integers(0, 2, (9, 8)).astype("int8"),
    },
    _game_of_life,
)


def _as_printed(m: Arrays) -> None:
    x = m["in"][:5]
    m["out"][:5] = ((x * 1 + 2) * x + 3) * x + 4
    m["out"][5:] = m["in"][5:] * np.float32(0.5)
    m["out"][0, :3] = np.abs(m["out"][:3, 0])


CASES["a module as mlir-opt prints it: aliases, a table, functions that call each other"] = Case(
    """
#id = affine_map<(d0, d1) -> (d0, d1)>
#set = affine_set<(d0) : (d0 - 5 >= 0)>
module attributes {test.name = "printed"} {
  memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
  func.func private @poly(%x: f32) -> f32 {
    %t = memref.get_global @table : memref<4xf32>
    %zero = arith.constant 0.0 : f32
    %r = affine.for %i = 0 to 4 iter_args(%s = %zero) -> (f32) {
      %k = affine.load %t[%i] : memref<4xf32>
      %m = arith.mulf %s, %x : f32
      %n = arith.addf %m, %k : f32
      affine.yield %n : f32
    }
    return %r : f32
  }
  func.func private @row(%in: memref<10x7xf32>, %out: memref<10x7xf32>, %i: index) {
    affine.for %j = 0 to 7 {
      %x = memref.load %in[%i, %j] : memref<10x7xf32>
      %y = func.call @poly(%x) : (f32) -> f32
      memref.store %y, %out[%i, %j] : memref<10x7xf32>
    }
    return
  }
  func.func @work(%in: memref<10x7xf32>, %out: memref<10x7xf32>, %n: index, %alpha: f32) {
    avial.schedule %in, %out {
      %cpu = avial.target {arch = "x86_64"}
      %gpu = avial.target {arch = "sm_90"}
      %top = avial.task %cpu, %in, %out {
        affine.for %i = 0 to 5 {
          func.call @row(%in, %out, %i) : (memref<10x7xf32>, memref<10x7xf32>, index) -> ()
        }
      }
      %bottom = avial.task %gpu, %in, %out {
        affine.for %i = 0 to 10 {
          affine.if #set(%i) {
            affine.for %j = 0 to 7 {
              %x = affine.load %in[%i, %j] : memref<10x7xf32>
              %y = arith.mulf %x, %alpha : f32
              affine.store %y, %out[%i, %j] : memref<10x7xf32>
            }
          }
        }
      }
      %mix = avial.task %cpu, %out {
        %c0 = arith.constant 0 : index
        scf.for %i = 0 to %n {
          %v = memref.load %out[%i, %c0] : memref<10x7xf32>
          %w = math.absf %v : f32
          memref.store %w, %out[%c0, %i] : memref<10x7xf32>
        }
      }
    }
    return
  }
}
""",
    lambda rng: {
        "in": rng.standard_normal((10, 7)).astype("float32"),
        "out": rng.standard_normal((10, 7)).astype("float32"),
    },
    _as_printed,
    scalars={"n": 3, "alpha": 0.5},
)
