"""Random programs print back in short notation, and parse to the same module."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell, print_module
from avial_lab.compiler.ir.dialects import register
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import AvialError, InternalError
from tests.quick import examples

DECK = Path(__file__).with_name("deck.avial").read_text()
CONTEXT = ir.Context()
register(CONTEXT)

TYPES = ("memref<20xi32>", "memref<6xi32>", "memref<20xi32, strided<[2]>>")


@st.composite
def bodies(draw: st.DrawFn, buffers: list[str]) -> tuple[str, list[str], list[str]]:
    """A body, what it reads and what it writes."""
    reads = draw(st.lists(st.sampled_from(buffers), min_size=1, max_size=3))
    writes = draw(st.lists(st.sampled_from(buffers), max_size=2))
    lines = [f"%v{k} = memref.load %{name}[%i]" for k, name in enumerate(reads)]
    lines.append(
        f"%s = arith.{draw(st.sampled_from(['addi', 'muli', 'xori']))} %v0, %v{len(reads) - 1}"
    )
    lines += [f"memref.store %s, %{name}[%i]" for name in writes]
    loop = draw(
        st.sampled_from(
            [
                "scf.parallel %i = 0 to 6",
                "scf.for %i = 1 to 5 step 2",
                "affine.for %i = 0 to 6",
                "launch",
            ]
        )
    )
    if loop == "launch":
        if not writes:
            loop = "scf.for %i = 0 to 3"
        else:
            return "gpu.launch { %i = gpu.thread_id x\n" + "\n".join(lines) + " }", reads, writes
    return f"{loop} {{\n" + "\n".join(lines) + "\n}", reads, writes


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Tasks over a few buffers and views, plain or with roles, with and without names."""
    count = draw(st.integers(1, 4))
    buffers = [f"b{k}" for k in range(count)]
    head = ", ".join(f"%{name}: {draw(st.sampled_from(TYPES))}" for name in buffers)
    lines = ['%cpu = avial.target {arch = "cpu"}', '%gpu = avial.target {arch = "gpu", node = "n"}']
    names: list[str] = []
    for k in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            lines.append(f"%w{k} = memref.subview %{draw(st.sampled_from(buffers))}[0][6][1]")
            buffers = [*buffers, f"w{k}"]
        body, reads, writes = draw(bodies(buffers))
        target = draw(st.sampled_from(["%cpu", "%gpu"]))
        if draw(st.booleans()):
            listed = "".join(f", %{n}" for n in draw(st.permutations(sorted({*reads, *writes}))))
        else:
            more = draw(st.lists(st.sampled_from(buffers), max_size=1))
            listed = f" reads({', '.join(f'%{n}' for n in [*reads, *more])})"
            if writes:
                listed += f" writes({', '.join(f'%{n}' for n in writes)})"
        if names and draw(st.booleans()):
            listed += f" after %{draw(st.sampled_from(names))}"
        if draw(st.booleans()):
            listed += ' attributes {note = "a, b {c} \\22"}'
        kind = draw(st.sampled_from(["task", "task", "replicate"]))
        if draw(st.booleans()):
            names.append(f"t{k}")
            lines.append(f"%t{k} = avial.{kind} {target}{listed} {{\n{body}\n}}")
        else:
            lines.append(f"avial.{kind} {target}{listed} {{\n{body}\n}}")
    return f"avial.schedule {head} {{\n" + "\n".join(lines) + "\n}\n"


def parsed(text: str) -> ir.Module:
    return parse_cell(text, cell="test", context=CONTEXT)


@settings(max_examples=examples(60), deadline=None)
@given(programs())
def test_printing_and_parsing_give_the_same_module(text: str) -> None:
    module = parsed(text)
    short = print_module(module)
    assert "func.func" not in short
    assert str(parsed(short)) == str(module)
    assert print_module(parsed(short)) == short
    assert str(parsed(str(module))) == str(module)
    generic = str(module.operation.get_asm(print_generic_op_form=True))
    assert str(parsed(generic)) == str(module)


def test_the_order_of_a_list_does_not_change_the_module() -> None:
    """Neither in the notation nor in generic form: the age of the buffers decides."""
    text = (
        "avial.schedule %a: memref<9xf32> {{ %t = avial.target\n"
        "%p = memref.subview %a[0][4][1]\n%b = memref.subview %a[4][4][1]\n"
        "avial.task %t, {} {{ memref.copy %p, %b : memref<4xf32, strided<[1]>> to"
        " memref<4xf32, strided<[1], offset: 4>> }} }}"
    )
    one, other = parsed(text.format("%p, %b")), parsed(text.format("%b, %p"))
    assert str(one) == str(other)
    lines = str(one).splitlines()
    first, second = (k for k, line in enumerate(lines) if "strided" in line and "_ref" in line)
    lines[first], lines[second] = lines[second], lines[first]
    assert "\n".join(lines) != str(one)
    assert str(parsed("\n".join(lines))) == str(one)


def test_the_deck_prints_back() -> None:
    binding = bind_arrays({name: np.zeros(20, np.int32) for name in "abcd"})
    module = parse_cell(DECK, cell="deck", context=CONTEXT, binding=binding)
    short = print_module(module)
    assert "%task3 = avial.task %gpu, %c, %d {" in short
    assert str(parsed(short)) == str(module)


TOKEN = re.compile(r'"[^"\n]*"|%[\w.#]+|[\w.]+|\s+|.', re.DOTALL)
GARBAGE = [
    "\x01",
    "é",
    '"',
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "1e400",
    "9" * 30,
    "%",
    "#",
    "^",
    "//",
    "->",
    ":",
]


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(range(5)), st.integers(0, 2**32))
def test_broken_text_is_an_error_of_ours(seed_text: int, seed: int) -> None:
    """Tokens lost, doubled, swapped or replaced: never a crash, never an error that is not ours."""
    rng = random.Random(seed)
    text = _seeds()[seed_text]
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        k, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        change = rng.randrange(5)
        if change == 0:
            del tokens[k]
        elif change == 1:
            tokens.insert(k, tokens[other])
        elif change == 2:
            tokens[k], tokens[other] = tokens[other], tokens[k]
        elif change == 3:
            tokens[k] = rng.choice(GARBAGE)
        else:
            del tokens[k : k + rng.randrange(1, 30)]
        tokens = tokens or [" "]
    try:
        module = parsed("".join(tokens))
    except InternalError:
        raise
    except AvialError:
        return
    assert str(parsed(print_module(module))) == str(module)


def _seeds() -> list[str]:
    """One program in every form it can be written in."""
    typed = DECK.replace("%a, %b, %c, %d {", "%a: T, %b: T, %c: T, %d: T {", 1).replace(
        ": T", ": memref<20xi32>"
    )
    module = parsed(typed)
    return [
        typed,
        str(module),
        print_module(module),
        str(module.operation.get_asm(print_generic_op_form=True)),
        typed.replace("scf.parallel", "affine.for").replace("memref.load", "affine.load"),
    ]
