"""A race as plain data, for another program to read.

Report -> what `avial-lab bench --json` prints. Its form is stable: fields keep their names (`heats`
are rounds, `lanes` their results) and meanings; more may come, and then `version` grows.

    format        "avial-lab race"
    version       2
    size          PolyBench's data size
    whole         false where the race was stopped before its last round
    made          {command, commit, date, versions}, since 2
    machine       processor, architecture, cores, threads, caches [{level, nbytes, shared_by}]
    ceilings      [{threads, element, flops_per_s, vector_bits, bytes_per_s,
                    caches [{level, bytes_per_s}]}]; threads of all ranks together
    heats         one for each kernel, number of ranks and number of threads:
      kernel, element, sizes {name: number}, ranks, threads
      flops, bytes        the kernel's own counts for one run
      best_peer           the fastest contestant that is not ours, or null
      ratio               the best peer's median over ours, or null
      least_ratio         the same of everybody's fastest run
      lanes               [{contestant, ours, seconds [of every run], median_s, least_s, compile_s,
                            ratio (its median over ours), flops_per_s, bytes_per_s, roofline (its
                            fraction of what the ceilings allow), fault, note}];
                            null: not known
    means         [{ranks, threads, element, against (a contestant; null: the best peer of each
                    kernel), ratio (geometric mean), kernels, worst_kernel, worst_ratio}]
    notes         what was left out or is to be doubted, in words

Times are in seconds. Nothing in it names the machine's owner, its host or its folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from avial_lab.benchmarks.table import Mean, Report, Result, Round, means
from avial_lab.machine.roofline import Ceilings

FORMAT = "avial-lab race"
VERSION = 2


def report_facts(report: Report, made: Mapping[str, Any]) -> dict[str, Any]:
    """The report as JSON has it; `made`: how (`made.made_by`)."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "size": report.size,
        "whole": report.whole,
        "made": dict(made),
        "machine": report.machine.facts(),
        "ceilings": [_ceilings_facts(ceilings) for ceilings in report.ceilings],
        "heats": [_round_facts(raced) for raced in report.rounds],
        "means": [_mean_facts(mean) for mean in means(report.rounds)],
        "notes": list(report.remarks),
    }


def _ceilings_facts(ceilings: Ceilings) -> dict[str, Any]:
    return {
        "threads": ceilings.threads,
        "element": ceilings.element,
        "flops_per_s": ceilings.flops_per_s,
        "vector_bits": ceilings.vector_bits,
        "bytes_per_s": ceilings.bytes_per_s,
        "caches": [
            {"level": level, "bytes_per_s": rate} for level, rate in ceilings.cache_bytes_per_s
        ],
    }


def _round_facts(raced: Round) -> dict[str, Any]:
    return {
        "kernel": raced.kernel,
        "element": raced.element,
        "sizes": dict(raced.sizes),
        "ranks": raced.ranks,
        "threads": raced.threads,
        "flops": raced.flops,
        "bytes": raced.bytes,
        "best_peer": None if raced.best is None else raced.best.contestant,
        "ratio": raced.ratio,
        "least_ratio": raced.least_ratio,
        "lanes": [_result_facts(raced, result) for result in raced.results],
    }


def _result_facts(raced: Round, result: Result) -> dict[str, Any]:
    median_s = result.median_s if result.seconds else None
    return {
        "contestant": result.contestant,
        "ours": result.is_ours,
        "seconds": list(result.seconds),
        "median_s": median_s,
        "least_s": min(result.seconds, default=None),
        "compile_s": result.compile_s if result.seconds else None,
        "ratio": raced.ratio_to(result),
        "flops_per_s": None if median_s is None else raced.flops / median_s,
        "bytes_per_s": None if median_s is None else raced.bytes / median_s,
        "roofline": raced.roofline(result),
        "fault": result.fault or None,
        "note": result.note or None,
    }


def _mean_facts(mean: Mean) -> dict[str, Any]:
    return {
        "ranks": mean.ranks,
        "threads": mean.threads,
        "element": mean.element,
        "against": mean.against or None,
        "ratio": mean.ratio,
        "kernels": mean.kernels,
        "worst_kernel": mean.worst_kernel,
        "worst_ratio": mean.worst_ratio,
    }
