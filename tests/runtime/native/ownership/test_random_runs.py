"""Random phases on ranks against NumPy: one C program, and a script that is written into it."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.cache import spelled
from avial_lab.runtime.launch import cluster as clusters
from avial_lab.runtime.native.planned_run import plan_run
from avial_lab.runtime.rank.job import Options
from tests.quick import examples
from tests.runtime.native.ownership.programs import Program, compiled

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

pytestmark = pytest.mark.mpi

N = 12
ROOM = 1024
MAGIC = 0x5EED_0F_5C217

CONSTANTS = f"""
enum {{ N = {N}, ROOM = {ROOM} }};
static const volatile i64 script[ROOM] = {{{MAGIC}LL}};
"""
INTERPRETER = """
i64 avial_chunk = 200, avial_piece = 20; /* pieces that end within an element */
typedef struct {
    i64 kind, out, use, low, high, lb, ub, step, offset, extent, block, grid;
    i64 first, first_way, first_shift, second, second_way, second_shift;
} step_t;
enum { ROW, COLUMN, ALL, ONE };               /* what an iteration reads of an array */
enum { EXACT, ODD, TURNED, SCATTERED, SUM };  /* what it writes */

static void reads(i64 array, i64 way, i64 shift, const i64 *r) {
    if (way == ROW) avial_read(array, BOX(r[0] + shift, r[2], r[1] + shift, r[3]));
    if (way == COLUMN) avial_read(array, BOX(r[2], r[0], r[3], r[1]));
    if (way == ALL) avial_read(array, BOX(0, r[2], N, r[3]));
    if (way == ONE) avial_read(array, BOX(shift, r[2], shift + 1, r[3]));
}
static void touches(const i64 *p, const i64 *r) {
    const step_t *s = (const step_t *)p;
    reads(s->first, s->first_way, s->first_shift, r);
    reads(s->second, s->second_way, s->second_shift, r);
    if (s->use == EXACT) avial_write(s->out, BOX(r[0], r[2], r[1], r[3]), 1);
    if (s->use == ODD) avial_write(s->out, BOX(r[0], r[2], r[1], r[3]), 0);
    if (s->use == TURNED) avial_write(s->out, BOX(r[2], r[0], r[3], r[1]), 1);
    if (s->use == SCATTERED) avial_write(s->out, BOX(0, r[2], N, r[3]), 0);
    if (s->use == SUM) avial_reduce(s->out, BOX(2, r[2], 3, r[3]), 4);
}
static i64 value(i64 *const *m, i64 array, i64 way, i64 shift, i64 v, i64 j) {
    const i64 *a = m[array];
    if (way == ROW) return v + shift < 0 || v + shift >= N ? 0 : a[(v + shift) * N + j];
    if (way == COLUMN) return a[j * N + v];
    if (way == ONE) return a[shift * N + j];
    i64 sum = 0;
    for (i64 k = 0; k < N; k++) sum += a[k * N + j] * (k + 1);
    return sum;
}
static void run(const step_t *s, i64 *const *m, i64 *acc, const i64 *r) {
    for (i64 v = r[0]; v < r[1]; v += s->step) for (i64 j = r[2]; j < r[3]; j++) {
        i64 x = value(m, s->first, s->first_way, s->first_shift, v, j) * 3
            + value(m, s->second, s->second_way, s->second_shift, v, j) * 7 + v - 5 * j;
        if (s->use == EXACT || (s->use == ODD && x & 1)) m[s->out][v * N + j] = x;
        if (s->use == TURNED) m[s->out][j * N + v] = x;
        if (s->use == SCATTERED) m[s->out][v * 5 % N * N + j] = x;
        if (s->use == SUM) acc[2 * N + j] += x;
    }
}
static void program(i64 *A, i64 *B, i64 *C) {
    i64 *const m[] = {A, B, C};
    i64 copy[ROOM];
    for (int k = 0; k < ROOM; k++) copy[k] = script[k];
    for (i64 t = 0; t < copy[1]; t++) for (i64 k = 0; k < copy[2]; k++) {
        const step_t *s = (const step_t *)(copy + 3) + k;
        i64 space[10] = {s->lb, s->ub, s->step, s->offset, s->extent, s->low, s->high, 1, 0, N};
        avial_layout(s->block, s->grid, 0, 0);
        REDUCTION(k, s->kind, touches, (const i64 *)s, space, s->out, i64, N * N * 8, {
            run(s, m, acc, r);
        });
    }
}
"""

ROW, COLUMN, ALL, ONE = range(4)
EXACT, ODD, TURNED, SCATTERED, SUM = range(5)


@dataclass(frozen=True)
class Step:
    """As `step_t`."""

    kind: int
    out: int
    use: int
    low: int
    high: int
    lb: int
    ub: int
    step: int
    offset: int
    extent: int
    block: int
    grid: int
    first: int
    first_way: int
    first_shift: int
    second: int
    second_way: int
    second_shift: int

    def run(self, arrays: list[np.ndarray]) -> None:
        """What it means, one iteration after the other."""
        before = [array.copy() for array in arrays]
        j = np.arange(self.low, self.high)
        for v in range(self.lb, self.ub, self.step):
            x = self._value(arrays, self.first, self.first_way, self.first_shift, v) * 3
            x = x + self._value(arrays, self.second, self.second_way, self.second_shift, v) * 7
            x = x + v - 5 * j
            out = arrays[self.out]
            if self.use == EXACT:
                out[v, j] = x
            elif self.use == ODD:
                out[v, j] = np.where(x % 2 == 1, x, out[v, j])
            elif self.use == TURNED:
                out[j, v] = x
            elif self.use == SCATTERED:
                out[v * 5 % N, j] = x
            else:
                out[2, j] += x
        assert all(
            k == self.out or (a == b).all()
            for k, (a, b) in enumerate(zip(arrays, before, strict=True))
        )

    def _value(self, arrays: list[np.ndarray], array: int, way: int, shift: int, v: int):
        j = slice(self.low, self.high)
        a = arrays[array]
        if way == ROW:
            return a[v + shift, j] if 0 <= v + shift < N else np.zeros(self.high - self.low, int)
        if way == COLUMN:
            return a[j, v]
        return a[shift, j] if way == ONE else (a[:, j] * np.arange(1, N + 1)[:, None]).sum(0)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    out = draw(st.integers(0, 2))
    use = draw(st.sampled_from([EXACT, EXACT, EXACT, ODD, TURNED, SCATTERED, SUM]))
    reads: list[int] = []
    for _ in range(2):
        array = draw(st.integers(0, 2))
        if array != out:
            reads += [array, draw(st.integers(ROW, ONE)), draw(st.integers(-1, 1))]
            if reads[-2] == ONE:
                reads[-1] = draw(st.integers(0, N - 1))
        elif use in (EXACT, ODD):
            reads += [array, ROW, 0]  # an iteration reads what it alone writes
        else:
            reads += [(out + 1) % 3, ROW, 0]
    low, lb = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    high, ub = draw(st.integers(low, N)), draw(st.integers(lb, N))
    kind = draw(st.sampled_from([0, 0, 0, 0, 0, 1, 2]))
    stride, offset = draw(st.sampled_from([1, 1, 1, 2])), draw(st.integers(-1, 1))
    if stride > 1 and use in (EXACT, TURNED):
        use = ODD if use == EXACT else SCATTERED  # rows are left out
        if use == SCATTERED:
            reads = [(out + 1) % 3, *reads[1:3], (out + 2) % 3, *reads[4:]]
    extent, block = draw(st.sampled_from([0, N])), draw(st.sampled_from([0, 0, 0, 1, 2]))
    grid = draw(st.sampled_from([0, 0, 0, 2]))
    return Step(kind, out, use, low, high, lb, ub, stride, offset, extent, block, grid, *reads)


def patched(times: int, script: list[Step]) -> bytes:
    words = [MAGIC, times, len(script), *(word for step in script for word in astuple(step))]
    assert len(words) <= ROOM
    code = compiled(Program(CONSTANTS + INTERPRETER, ("A", "B", "C"), ("i64",) * 3, ()).text())
    at = code.index(struct.pack("<q", MAGIC) + bytes(8))
    return code[:at] + struct.pack(f"<{len(words)}q", *words) + code[at + 8 * len(words) :]


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    script=st.lists(steps(), min_size=1, max_size=6),
    times=st.integers(1, 3),
    ranks=st.sampled_from([1, 2, 3, 4, 5, 7]),
    seed=st.integers(0, 2**31),
)
def test_any_phases_on_any_ranks_are_as_in_numpy(
    script: list[Step], times: int, ranks: int, seed: int, cluster: Cluster
) -> None:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(-1000, 1000, (N, N)) for name in "ABC"}
    want = [array.copy() for array in arrays.values()]
    for _ in range(times):
        for step in script:
            step.run(want)
    shared_object = patched(times, script)
    binding = bind_arrays(arrays)
    phases = tuple(map(str, range(len(script))))
    plan = plan_run(shared_object, binding.storages, ranks, phases=phases)
    manifest = DerivedMessages(
        entry="main", ranks=ranks, buffers=binding.buffers, storages=binding.storages,
        inputs=plan.inputs, results=plan.results, uses_mpi=ranks > 1, phases=phases,
    )  # fmt: skip
    key = hashlib.sha256(shared_object + spelled(manifest).encode()).hexdigest()
    trace = clusters.run(
        Binary(key, shared_object, {}, manifest), arrays, cluster,
        options=Options(traced=False, poison=True),
    )  # fmt: skip
    for name, expected in zip("ABC", want, strict=True):
        np.testing.assert_array_equal(arrays[name], expected, err_msg=name)
    assert set(trace.moves) == set(plan.moves)
    assert plan.complete


def test_the_script_is_where_it_is_looked_for() -> None:
    step = Step(0, 0, EXACT, 0, 3, 0, 3, 1, 0, 0, 0, 0, 1, ROW, 0, 2, ROW, 0)
    assert patched(1, [step]) != patched(1, [replace(step, out=1)])
