"""A tree as MLIR text, as a front end writes it: affine, or scf with arithmetic on indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tests.compiler.analysis.polyhedral.nests import Expression
from tests.nests.tree import (
    SIZE,
    Array,
    Carried,
    Constant,
    Counter,
    Element,
    For,
    If,
    Nest,
    Scratch,
    Store,
    Value,
    While,
)


class Writer:
    """One nest as lines of text, `affine` or not."""

    def __init__(self, arrays: Mapping[str, Array], *, affine: bool, start: int) -> None:
        self.arrays, self.affine = arrays, affine
        self.lines: list[str] = []
        self.count = start

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    # indices

    def index(self, e: Expression) -> str:
        """An index value."""
        if self.affine:
            depth = len(e.factors)
            return self.op(f"affine.apply affine_map<{_inputs(depth)} -> ({e.affine()})>"
                           f"{_operands(depth)}")  # fmt: skip
        total = self.op(f"arith.constant {e.constant} : index")
        scaled = [(f"%i{k}", f) for k, f in enumerate(e.factors)] + [(f"%{SIZE}", e.of_n)]
        for name, factor in scaled:
            if factor:
                by = self.op(f"arith.constant {factor} : index")
                term = self.op(f"arith.muli {name}, {by} : index")
                total = self.op(f"arith.addi {total}, {term} : index")
        if e.then:
            by = self.op(f"arith.constant {e.divisor} : index")
            whole = self.op(f"arith.floordivsi {total}, {by} : index")
            if e.then == "floordiv":
                return whole
            back = self.op(f"arith.muli {whole}, {by} : index")
            return self.op(f"arith.subi {total}, {back} : index")
        return total

    def places(self, element: Element) -> tuple[bool, str]:
        """Whether all subscripts are affine as they stand, and their text."""
        if self.affine and not any(element.through):
            return True, ", ".join(_inline(e) for e in element.subscripts)
        found = []
        for e, table in zip(element.subscripts, element.through, strict=True):
            place = self.index(e)
            if table is not None:
                loaded = self.op(f"memref.load %{table}[{place}] : {self.arrays[table].type}")
                place = self.op(f"arith.index_cast {loaded} : i32 to index")
            found.append(place)
        return False, ", ".join(found)

    # values

    def value(self, value: Value, kind: str, carried: Sequence[str]) -> str:
        if isinstance(value, Element):
            plain, places = self.places(value)
            dialect = "affine" if plain else "memref"
            return self.op(
                f"{dialect}.load %{value.array}[{places}] : {self.arrays[value.array].type}"
            )
        if isinstance(value, Constant):
            text = str(int(value.value)) if kind == "i32" else repr(float(value.value))
            return self.op(f"arith.constant {text} : {kind}")
        if isinstance(value, Counter):
            return self.op(f"arith.index_cast {self.index(value.expression)} : index to i32")
        if isinstance(value, Carried):
            return carried[value.number]
        left, right = (self.value(side, kind, carried) for side in (value.left, value.right))
        return self.op(f"arith.{value.operation} {left}, {right} : {kind}")

    # nodes

    def nodes(self, nodes: Nest, depth: int, carried: Sequence[str]) -> None:
        for node in nodes:
            if isinstance(node, Store):
                kind = self.arrays[node.to.array].kind
                self.store(node.to, self.value(node.value, kind, carried))
            elif isinstance(node, If):
                self.branch(node, depth, carried)
            elif isinstance(node, While):
                self.repeat(node, depth, carried)
            elif isinstance(node, Scratch):
                self.scratch(node, depth, carried)
            else:
                self.loop(node, depth, carried)

    def scratch(self, node: Scratch, depth: int, carried: Sequence[str]) -> None:
        array = self.arrays[node.array]
        how = "alloc" if len(node.starts) > 1 else "alloca"
        self.lines.append(f"%{node.array} = memref.{how}() : {array.type}")
        for place, start in enumerate(node.starts):
            value = self.value(Constant(start), array.kind, ())
            index = self.op(f"arith.constant {place} : index")
            self.lines.append(f"memref.store {value}, %{node.array}[{index}] : {array.type}")
        self.nodes(node.body, depth, carried)
        if how == "alloc" and sum(node.starts) > 0:
            self.lines.append(f"memref.dealloc %{node.array} : {array.type}")

    def store(self, to: Element, value: str) -> None:
        plain, places = self.places(to)
        dialect = "affine" if plain else "memref"
        self.lines.append(f"{dialect}.store {value}, %{to.array}[{places}] : "
                          f"{self.arrays[to.array].type}")  # fmt: skip

    def branch(self, node: If, depth: int, carried: Sequence[str]) -> None:
        if node.data is not None:
            data = self.value(node.data, "i32", ())
            zero = self.op("arith.constant 0 : i32")
            self.lines.append(f"scf.if {self.op(f'arith.cmpi sgt, {data}, {zero} : i32')} {{")
        elif self.affine:
            relation = "==" if node.equal else ">="
            self.lines.append(
                f"affine.if affine_set<{_inputs(depth)} : ({node.condition.affine()} {relation} 0)>"
                f"{_operands(depth)} {{"
            )
        else:
            left, zero = self.index(node.condition), self.op("arith.constant 0 : index")
            how = "eq" if node.equal else "sge"
            self.lines.append(f"scf.if {self.op(f'arith.cmpi {how}, {left}, {zero} : index')} {{")
        self.nodes(node.then, depth, carried)
        if node.otherwise:
            self.lines.append("} else {")
            self.nodes(node.otherwise, depth, carried)
        self.lines.append("}")

    def repeat(self, node: While, depth: int, carried: Sequence[str]) -> None:
        zero = self.op("arith.constant 0 : i32")
        count, again, result = self.name(), self.name(), self.name()
        self.lines.append(f"{result} = scf.while ({count} = {zero}) : (i32) -> i32 {{")
        most = self.op(f"arith.constant {node.most} : i32")
        limit = self.op(f"arith.constant {node.limit} : i32")
        room = self.op(f"arith.cmpi slt, {count}, {most} : i32")
        value = self.value(node.element, "i32", ())
        small = self.op(f"arith.cmpi sle, {value}, {limit} : i32")
        both = self.op(f"arith.andi {room}, {small} : i1")
        self.lines += [f"scf.condition({both}) {count} : i32", "} do {", f"^bb0({again}: i32):"]
        self.nodes(node.body, depth, carried)
        one = self.op("arith.constant 1 : i32")
        more = self.op(f"arith.addi {again}, {one} : i32")
        self.lines += [f"scf.yield {more} : i32", "}"]

    def loop(self, node: For, depth: int, carried: Sequence[str]) -> None:
        kind = self.arrays[node.to.array].kind if node.to is not None else ""
        hand_on, result, start = "", "", ""
        if node.sum is not None and node.start is not None:
            start = self.value(node.start, kind, ())
            result, hand_on = self.name(), self.name()
        arguments = f" iter_args({hand_on} = {start}) -> ({kind})" if result else ""
        head = f"{result} = " if result else ""
        if self.affine:
            lows, highs = (
                f"{name} affine_map<{_inputs(depth)} -> ({', '.join(e.affine() for e in each)})>"
                f"{_operands(depth)}"
                for name, each in (("max", node.lows), ("min", node.highs))
            )
            if node.parallel:
                self.lines.append(f"affine.parallel (%i{depth}) = "
                                  f"({_inline(node.lows[0])}) to ({_inline(node.highs[0])}) "
                                  f"step ({node.step}) {{")  # fmt: skip
            else:
                self.lines.append(
                    f"{head}affine.for %i{depth} = {lows} to {highs} step {node.step}{arguments} {{"
                )
        else:
            low = self.extreme(node.lows, "maxsi")
            high = self.extreme(node.highs, "minsi")
            step = self.op(f"arith.constant {node.step} : index")
            if node.parallel:
                self.lines.append(
                    f"scf.parallel (%i{depth}) = ({low}) to ({high}) step ({step}) {{"
                )
            else:
                self.lines.append(
                    f"{head}scf.for %i{depth} = {low} to {high} step {step}{arguments} {{"
                )
        inside = [*carried, hand_on] if result else carried
        self.nodes(node.body, depth + 1, inside)
        if node.sum is not None and node.to is not None:
            term = self.value(node.sum, kind, inside)
            new = self.op(f"arith.{node.operation} {hand_on}, {term} : {kind}")
            self.lines.append(f"{'affine' if self.affine else 'scf'}.yield {new} : {kind}")
        self.lines.append("}")
        if node.to is not None:
            self.store(node.to, result)

    def extreme(self, each: Sequence[Expression], operation: str) -> str:
        found = self.index(each[0])
        for e in each[1:]:
            found = self.op(f"arith.{operation} {found}, {self.index(e)} : index")
        return found


def _inputs(depth: int) -> str:
    return f"({', '.join(f'd{k}' for k in range(depth))})[s0]"


def _operands(depth: int) -> str:
    return f"({', '.join(f'%i{k}' for k in range(depth))})[%{SIZE}]"


def _inline(e: Expression) -> str:
    text = e.affine().replace("s0", f"symbol(%{SIZE})")
    for k in range(len(e.factors)):
        text = text.replace(f"d{k} ", f"%i{k} ")
    return text


def text_of(nests: Sequence[tuple[Nest, bool]], arrays: Mapping[str, Array]) -> str:
    given = [f"%{name}: {array.type}" for name, array in arrays.items() if not array.local]
    lines = [f"func.func @random({', '.join([*given, f'%{SIZE}: index'])}) {{"]
    for name, array in arrays.items():
        if array.local and not array.scratch:
            lines.append(f"%{name} = memref.alloca() : {array.type}")
            zero = "0" if array.kind == "i32" else "0.0"
            lines.append(f"%{name}_zero = arith.constant {zero} : {array.kind}")
            places = [f"%{name}_{k}" for k in range(max(array.extents, default=0))]
            lines += [f"{p} = arith.constant {k} : index" for k, p in enumerate(places)]
            for point in product(*map(range, array.extents)):
                index = ", ".join(places[k] for k in point)
                lines.append(f"memref.store %{name}_zero, %{name}[{index}] : {array.type}")
    count = 0
    for nest, affine in nests:
        writer = Writer(arrays, affine=affine, start=count)
        writer.nodes(nest, 0, ())
        lines += writer.lines
        count = writer.count
    return "\n".join([*lines, "return", "}", ""])
