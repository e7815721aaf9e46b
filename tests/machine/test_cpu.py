"""What is known of the CPU comes from what the kernel says."""

from pathlib import Path

import pytest

from avial_lab.core.errors import ClusterError
from avial_lab.machine import cpu as this
from avial_lab.machine.cpu import (
    Cpu,
    allowed,
    check_instruction_sets,
    cores_of,
    cpu_of,
    data_caches,
    instruction_sets,
    instruction_sets_of,
    this_cpu,
)


@pytest.mark.parametrize(
    ("machine", "flags", "wide", "registers", "fma"),
    [
        ("x86_64", {"sse2"}, 16, 16, False),
        ("x86_64", {"avx"}, 32, 16, False),
        ("x86_64", {"avx", "avx2", "fma"}, 32, 16, True),
        ("x86_64", {"avx", "avx2", "fma", "avx512f"}, 64, 32, True),
        ("aarch64", {"asimd"}, 16, 32, True),
    ],
)
def test_vectors(machine, flags, wide, registers, fma):
    cpu = cpu_of(machine, frozenset(flags))
    assert (cpu.vector_bytes, cpu.vector_registers, cpu.fma) == (wide, registers, fma)
    assert cpu.lanes(8) == wide // 8


def test_caches_are_read_from_the_kernels_files(tmp_path: Path):
    for name, level, kind, size, shared in (
        ("index0", 1, "Data", "48K", "0"),
        ("index1", 1, "Instruction", "32K", "0"),
        ("index2", 2, "Unified", "2M", "0-1"),
        ("index3", 3, "Unified", "30M", "0-7,16-23"),
    ):
        (tmp_path / name).mkdir()
        for file, text in (
            ("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)
        ):  # fmt: skip
            (tmp_path / name / file).write_text(f"{text}\n")
    caches = data_caches(tmp_path)
    assert caches == {1: (48 * 1024, 1), 2: (2 * 1024**2, 2), 3: (30 * 1024**2, 16)}
    cpu = cpu_of("x86_64", frozenset(), caches)
    assert (cpu.l1_bytes, cpu.l2_bytes, cpu.last_bytes) == (48 * 1024, 2 * 1024**2, 30 * 1024**2)


def test_a_machine_that_tells_nothing_is_taken_to_be_small(tmp_path: Path):
    assert data_caches(tmp_path) == {}
    assert cpu_of("riscv64", frozenset()) == Cpu()


def test_this_machine():
    assert this_cpu().l1_bytes <= this_cpu().l2_bytes <= this_cpu().last_bytes
    threads = allowed()
    assert this_cpu().cores == len(cores_of(threads))
    assert sorted(sum(cores_of(threads), ())) == list(threads)


@pytest.mark.parametrize(
    ("vendor", "slow"), [("AuthenticAMD", True), ("GenuineIntel", False), ("", False)]
)
def test_whose_gathers_are_slow(vendor: str, slow: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(this, "_cpuinfo", lambda: f"processor\t: 0\nvendor_id\t: {vendor}\n")
    assert this.has_slow_gathers() == slow


@pytest.mark.parametrize(
    ("vendor", "family", "flag", "halves"),
    [
        ("AuthenticAMD", 25, "avx512f", True),
        ("AuthenticAMD", 25, "avx2", False),
        ("AuthenticAMD", 26, "avx512f", False),
        ("GenuineIntel", 6, "avx512f", False),
    ],
)
def test_whose_vectors_go_in_halves(
    vendor: str, family: int, flag: str, halves: bool, monkeypatch: pytest.MonkeyPatch
):
    told = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\n"
    monkeypatch.setattr(this, "_cpuinfo", lambda: told)
    monkeypatch.setattr(this, "_flags", lambda: frozenset({flag}))
    assert this.has_halves() == halves


def test_machine_code_of_a_better_cpu_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(this, "_flags", lambda: frozenset({"avx", "avx2", "fma", "hypervisor"}))
    check_instruction_sets(())
    check_instruction_sets({"fma", "avx2"})
    with pytest.raises(ClusterError, match=r"lacks avx512f, avx512vl, which the program") as caught:
        check_instruction_sets(["avx512vl", "avx2", "avx512f"])
    assert caught.value.hint is not None
    assert "compile it on that machine" in caught.value.hint


def test_where_the_kernel_tells_nothing_nothing_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(this, "_flags", frozenset)
    check_instruction_sets({"avx512f"})


def test_a_level_has_the_instructions_of_the_one_below():
    second, third, fourth = map(instruction_sets_of, this.LEVELS)
    assert {"avx2", "fma"} <= third < fourth
    assert {"sse4_2", "popcnt"} <= second < third
    assert all(this.USED.fullmatch(name) for name in fourth)
    assert instruction_sets_of("native") == instruction_sets()


def test_code_for_several_machines_is_for_what_all_have(monkeypatch: pytest.MonkeyPatch):
    second, third, fourth = map(instruction_sets_of, this.LEVELS)
    monkeypatch.setattr(this, "instruction_sets", lambda: fourth)
    assert this.level_for([]) == this.level_for([fourth, fourth | {"more"}]) == ""
    assert this.level_for([fourth, third]) == "x86-64-v3"
    assert (
        this.level_for([frozenset(), third, second]) == "x86-64-v2"
    )  # of the first nothing is known
    assert this.level_for([frozenset({"pni"})]) == ""  # each rank refuses what it lacks
    monkeypatch.setattr(this, "instruction_sets", lambda: third)
    assert this.level_for([fourth, second]) == "x86-64-v2"
