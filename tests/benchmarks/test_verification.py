"""The right answer, where it comes from C: the same as NumPy's, and only believed where it is."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.benchmarks import verification as answer_module
from avial_lab.benchmarks.kernel_suite import kernel_names, kernel_program
from avial_lab.benchmarks.verification import Answer, native_answer, results
from avial_lab.core.errors import CheckError

QUICK = ("gemm", "correlation", "heat-3d", "mlp", "nussinov", "spmv")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def assert_like_numpy(name: str, element: str) -> None:
    start = kernel_program(name, size="MINI", element=element)
    truth, bound = native_answer(start)
    known, known_bound = start.kernel.truth(start.before), start.kernel.bound(start.before)
    for key in results(start.kernel):
        assert truth[key].dtype == known[key].dtype
        with np.errstate(all="ignore"):
            off = np.abs(truth[key].astype(np.float64) - known[key])
        assert ((off <= known_bound[key]) | np.isnan(known[key])).all(), key
        # One and the same analysis; scalars' own roundings are in the one and not in the other.
        assert (bound[key] <= 2.5 * known_bound[key] + 1e-30).all(), key
        assert (bound[key] >= 0.9 * known_bound[key] - 1e-30).all(), key


@pytest.mark.quick("gemm", "spmv", "nussinov")
@pytest.mark.parametrize("name", QUICK)
def test_truth_and_bound_are_numpys(name: str) -> None:
    assert_like_numpy(name, kernel_program(name, size="MINI").kernel.elements[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", kernel_names())
def test_truth_and_bound_are_numpys_for_all(name: str) -> None:
    for element in kernel_program(name, size="MINI").kernel.elements:
        assert_like_numpy(name, element)


def test_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    start = kernel_program("atax", size="MINI")
    truth, bound = native_answer(start)
    monkeypatch.setattr(answer_module, "_left_by", pytest.fail)
    again, bound_again = native_answer(start)
    assert np.array_equal(truth["y"], again["y"])
    assert np.array_equal(bound["y"], bound_again["y"])


def test_what_was_trusted_once_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy is asked again only when a text is another one."""
    monkeypatch.setattr(answer_module, "_NUMPY_FLOPS", 0)
    asked: list[str] = []
    by_numpy = answer_module._by_numpy
    monkeypatch.setattr(
        answer_module, "_by_numpy", lambda s: asked.append(s.kernel.name) or by_numpy(s)
    )
    start = kernel_program("atax", size="MINI")
    for _ in range(2):
        answer = Answer(start)
        answer.check(start.kernel.truth(start.before))
        assert not answer.note
    assert asked == ["atax"]
    monkeypatch.setattr(answer_module, "_numpy_texts", lambda _: [b"another"])
    Answer(start).check(start.kernel.truth(start.before))
    assert asked == ["atax"] * 2


def test_other_inputs_have_another_answer() -> None:
    truth, _ = native_answer(kernel_program("atax", size="MINI"))
    other, _ = native_answer(kernel_program("atax", size="MINI", seed=1))
    assert not np.array_equal(truth["y"], other["y"])


def test_a_wrong_text_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer's text is broken; NumPy's truth is taken, which the peer then differs from."""
    source = answer_module.peer_source

    def broken(*arguments: object, **options: object) -> str:
        text = source(*arguments, **options)  # type: ignore[arg-type]
        assert "C[i][j] *= beta;" in text
        return text.replace("C[i][j] *= beta;", "C[i][j] *= 2;")

    monkeypatch.setattr(answer_module, "peer_source", broken)
    monkeypatch.setattr(answer_module, "_NUMPY_FLOPS", 0)
    start = kernel_program("gemm", size="SMALL")
    answer = Answer(start)
    answer.check(start.kernel.truth(start.before))
    assert answer.note.startswith("gemm: the reference is NumPy's, which is slow: wrong: C[0, 0]")
    wrong, _ = native_answer(start)
    with pytest.raises(CheckError, match=r"wrong: C\[0, 0\]"):
        answer.check(wrong)


def test_a_bound_that_is_too_wide_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would let every answer pass."""
    source = answer_module.bound_source
    monkeypatch.setattr(
        answer_module,
        "bound_source",
        lambda *a, **o: source(*a, **o).replace("additions * EPS", "1000 * additions * EPS"),
    )
    monkeypatch.setattr(answer_module, "_NUMPY_FLOPS", 0)
    start = kernel_program("lu", size="SMALL")
    answer = Answer(start)
    answer.check(start.kernel.truth(start.before))
    assert "the bound on A is not NumPy's" in answer.note
