"""Sines and the like have code up to a limit of their argument: it is tested before a loop.

Functions of loops -> the same values, such innermost loops in two versions, some hundred iterations
at a time. A question for each element has a call behind it, which no vector can make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir
from mlir.dialects import affine, arith, scf

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import innermost_loops
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.codegen.loops.index_arithmetic import least, plus, times
from avial_lab.compiler.codegen.loops.unroll_and_jam import Values, copy_with, variable_of
from avial_lab.compiler.codegen.math.floats import Kind, Real
from avial_lab.compiler.codegen.math.functions import LIMITS
from avial_lab.compiler.ir.attributes import CHOSEN, INDEPENDENT, NEAR, PARALLEL
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES, is_pure
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import FORS, body_of, end_of, inits_of
from avial_lab.compiler.ir.operations import attributes_of, constant_of, loops_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.ir.views import may_be

NAME = "version-by-argument"

AT_ONCE = 512
"""Iterations that are asked about together: what they load is still in the nearest cache when they
load it again, and one far argument makes no more of them slow.
"""

FEWEST = 16
"""Iterations of a loop: some vectors of them."""

LONGEST = 1 << 20
"""Of its steps: so many times as many iterations as are asked about at once are still a number."""

MOST_ASKED = 60
"""Operations that are done twice, once for the question."""


@dataclass(frozen=True)
class VersionByArgument:
    """Ask for the greatest argument of some iterations, and do without a question in them where
    that is within the limit.

    before:  affine.for %i = 0 to %n { … %y = math.sin %x {avial.expand = "fused"} … }
    after:   affine.for %c = 0 to %n step 512 {
               %most = affine.for %i = %c to min(%c + 512, %n) iter_args(%m = 0) { max(%m, |%x|) }
               scf.if %most > %limit { affine.for %i = %c to min(%c + 512, %n) { … } }
               else { the same, %y = math.sin %x {avial.expand = "fused", avial.near} } }

    Arguments are compared as the integers that their bits are: what is infinite or no number is
    greater than any limit.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for loop in loops_in(function, FORS):
                    question = _question_of(loop)
                    if question is not None:
                        question.write()

    def __str__(self) -> str:
        return NAME


def _question_of(loop: ir.Operation) -> _Question | None:
    """None where there is nothing to ask, or it cannot be asked before the loop."""
    body = body_of(loop)
    limited = [op for op in body if op.name in LIMITS and CHOSEN in op.attributes]
    if not limited or innermost_loops(loop) != [loop] or not 0 < _step(loop) <= LONGEST:
        return None
    count = _count(loop)
    if count is not None and count < FEWEST:
        return None
    if not all(op.name in ACCESSES or (is_pure(op) and not len(op.regions)) for op in body):
        return None
    asked = [op for op in limited if _may_be_asked(op, loop)]
    question = _Question(loop, asked, count)
    return question if asked and len(question.repeated) <= MOST_ASKED else None


def _may_be_asked(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether its argument hangs on nothing that the loop itself makes: neither on a value that it
    hands on, nor on what it stores, nor on another function with a limit.
    """
    if isinstance(op.results[0].type, ir.VectorType):
        return False  # one question for all lanes
    body = body_of(loop)
    own = _behind([op.operands[0]], loop)
    carried = list(loop.regions[0].blocks[0].arguments)[1:]
    apart = INDEPENDENT in loop.attributes or PARALLEL in loop.attributes
    for each in own:
        if any(value in carried for value in each.operands) or each.name in LIMITS:
            return False
        if each.name not in LOADS:
            continue
        before = body[: body.index(each)] if apart else body
        loaded = may_be(each.operands[0])
        if any(s.name in STORES and loaded & may_be(s.operands[1]) for s in before):
            return False
    return op.operands[0] not in carried


def _behind(values: Sequence[ir.Value], loop: ir.Operation) -> list[ir.Operation]:
    """What is computed in the body for these values, in its order."""
    body, wanted = body_of(loop), set(values)
    found: list[ir.Operation] = []
    for op in reversed(body):
        if any(result in wanted for result in op.results):
            found.insert(0, op)
            wanted.update(op.operands)
    return found


def _step(loop: ir.Operation) -> int:
    """0 where that is not known, or where it does not count in numbers as wide as addresses."""
    if loop.name == "affine.for":
        return ir.IntegerAttr(loop.attributes["step"]).value
    wide = isinstance(loop.operands[0].type, ir.IndexType) and "unsignedCmp" not in loop.attributes
    return (constant_of(loop.operands[2]) or 0) if wide else 0


def _count(loop: ir.Operation) -> int | None:
    """Of its iterations, where that is known."""
    if loop.name == "affine.for":
        lows, highs = known_ends(loop)
    else:
        lows, highs = ([constant_of(value)] for value in list(loop.operands)[:2])
    if None in (*lows, *highs):
        return None
    low, high = max(each or 0 for each in lows), min(each or 0 for each in highs)
    return -(-(high - low) // _step(loop))


@dataclass(frozen=True)
class _Question:
    """Whether the arguments of these operations in `loop`, of `count` iterations, are near."""

    loop: ir.Operation
    asked: Sequence[ir.Operation]
    count: int | None

    @property
    def repeated(self) -> list[ir.Operation]:
        """What the arguments are computed from."""
        return _behind([op.operands[0] for op in self.asked], self.loop)

    def write(self) -> None:
        loop = self.loop
        names = listed(dict.fromkeys(op.name.removeprefix("math.") for op in self.asked))
        add_remark(
            loop,
            NAME,
            f"two versions of loop {loop_name(loop)}: by the range of the arguments of {names}",
        )
        inits = inits_of(loop)
        with ir.InsertionPoint(loop), loop.location:
            if self.count is not None and self.count <= 2 * AT_ONCE:
                results = self._versions(_Ends.of(loop), inits)
            else:
                made = _Ends.of(loop).strips().loop(inits, self._strip, variable_of(loop))
                results = list(made.results)
        for old, new in zip(loop.results, results, strict=True):
            old.replace_all_uses_with(new)
        loop.erase()

    def _strip(self, first: ir.Value, carried: Sequence[ir.Value]) -> Sequence[ir.Value]:
        return self._versions(_Ends.of(self.loop).from_here(first), carried)

    def _versions(self, ends: _Ends, inits: Sequence[ir.Value]) -> list[ir.Value]:
        """The loop between these ends, in two versions."""
        choice = scf.IfOp(self._far(ends), [value.type for value in inits], has_else=True)
        for region, near in zip(choice.operation.regions, (False, True), strict=True):
            with ir.InsertionPoint(region.blocks[0]):

                def body(
                    variable: ir.Value, carried: Sequence[ir.Value], near: bool = near
                ) -> Sequence[ir.Value]:
                    return self._body(variable, carried, near=near)

                made = ends.loop(inits, body, variable_of(self.loop), attributes_of(self.loop))
                scf.YieldOp(list(made.results))
        return list(choice.operation.results)

    def _body(
        self, variable: ir.Value, carried: Sequence[ir.Value], *, near: bool
    ) -> Sequence[ir.Value]:
        old = self.loop.regions[0].blocks[0].arguments
        known: Values = dict(zip(old, (variable, *carried), strict=True))
        copy_with(body_of(self.loop), known)
        for op in self.asked:
            if near:
                known[op.results[0]].owner.operation.attributes[NEAR] = ir.UnitAttr.get()
        return [known.get(value, value) for value in end_of(self.loop).operands]

    def _far(self, ends: _Ends) -> ir.Value:
        """Whether some argument is beyond the limit of its function."""
        limits = [_limit_of(op) for op in self.asked]
        zeros = [arith.constant(limit.type, 0) for limit in limits]

        def body(variable: ir.Value, most: Sequence[ir.Value]) -> Sequence[ir.Value]:
            known: Values = {variable_of(self.loop): variable}
            copy_with(self.repeated, known)
            arguments = [known.get(op.operands[0], op.operands[0]) for op in self.asked]
            return [
                arith.maxui(so_far, abs(Real(Kind(x.type, fused=False), x)).bits().value)
                for so_far, x in zip(most, arguments, strict=True)
            ]

        most = ends.loop(zeros, body, variable_of(self.loop)).results
        far = [
            arith.cmpi(arith.CmpIPredicate.ugt, each, limit)
            for each, limit in zip(most, limits, strict=True)
        ]
        return reduce(arith.ori, far)


def _limit_of(op: ir.Operation) -> ir.Value:
    """Its bits."""
    kind = Kind(op.results[0].type, fused=False)
    return kind.number(LIMITS[op.name][kind.width]).bits().value


Body = Callable[[ir.Value, Sequence[ir.Value]], Sequence[ir.Value]]
"""Writes a loop's body: of its variable and what it is handed, what it hands on."""


@dataclass(frozen=True)
class _Ends:
    """From where to where a loop goes: operands and attributes of one like it."""

    name: str
    operands: Sequence[ir.Value]
    attributes: Mapping[str, ir.Attribute]

    @staticmethod
    def of(loop: ir.Operation) -> _Ends:
        own = ("lowerBoundMap", "upperBoundMap", "step", "operandSegmentSizes")
        attributes = {n: a for n, a in attributes_of(loop).items() if n in own}
        return _Ends(loop.name, operands_of_ends(loop), attributes)

    def loop(
        self,
        inits: Sequence[ir.Value],
        body: Body,
        like: ir.Value,
        marks: Mapping[str, ir.Attribute] | None = None,
    ) -> ir.Operation:
        """A loop between these ends that carries values, its variable named `like` another."""
        attributes = {**(marks or {}), **self.attributes}
        if self.name == "affine.for":
            low, high, _ = ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])
            sizes = ir.DenseI32ArrayAttr.get([low, high, len(inits)])
            attributes["operandSegmentSizes"] = sizes
        types = [value.type for value in inits]
        made = ir.Operation.create(
            self.name, types, [*self.operands, *inits], attributes=attributes, regions=1
        )
        places = [like.location, *(value.location for value in inits)]
        block = made.regions[0].blocks.append(like.type, *types, arg_locs=places)
        with ir.InsertionPoint(block):
            variable, *carried = block.arguments
            handed = list(body(variable, carried))
            affine.AffineYieldOp(handed) if self.name == "affine.for" else scf.YieldOp(handed)
        return made

    @property
    def _step(self) -> int:
        return ir.IntegerAttr(self.attributes["step"]).value

    def strips(self) -> _Ends:
        """The first iterations of so many at once."""
        if self.name == "affine.for":
            step = ir.IntegerAttr.get(ir.IndexType.get(), self._step * AT_ONCE)
            return _Ends(self.name, self.operands, {**self.attributes, "step": step})
        low, high, step = self.operands
        return _Ends(self.name, [low, high, times(step, AT_ONCE)], self.attributes)

    def from_here(self, first: ir.Value) -> _Ends:
        """So many iterations from this one on, or up to the end."""
        if self.name != "affine.for":
            _, high, step = self.operands
            end = least(plus(first, times(step, AT_ONCE)), high)
            return _Ends(self.name, [first, end, step], self.attributes)
        lows, _, _ = ir.DenseI32ArrayAttr(self.attributes["operandSegmentSizes"])
        above = list(self.operands)[lows:]
        upper = ir.AffineMapAttr(self.attributes["upperBoundMap"]).value
        dims, symbols = above[: upper.n_dims], above[upper.n_dims :]
        here = ir.AffineDimExpr.get(upper.n_dims)
        ends = [*upper.results, here + self._step * AT_ONCE]
        highs = ir.AffineMap.get(upper.n_dims + 1, upper.n_symbols, ends)
        attributes = {
            **self.attributes,
            "lowerBoundMap": ir.AffineMapAttr.get(ir.AffineMap.get_identity(1)),
            "upperBoundMap": ir.AffineMapAttr.get(highs),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(above) + 1, 0]),
        }
        return _Ends(self.name, [first, *dims, first, *symbols], attributes)
