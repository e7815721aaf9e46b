"""A race as plain data, for another program to read.

Sheet -> what `avial-lab bench --json` prints. Its form is stable: what is there stays and keeps its
meaning; more may come, and then `version` grows.

    format        "avial-lab race"
    version       2
    size          PolyBench's data size
    whole         false where the race was stopped before its last heat
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

from avial_lab.benchmarks.table import Heat, Lane, Mean, Sheet, means
from avial_lab.machine.roofline import Ceilings

FORMAT = "avial-lab race"
VERSION = 2


def sheet_facts(sheet: Sheet, made: Mapping[str, Any]) -> dict[str, Any]:
    """The sheet as JSON has it; `made`: how (`made.made_by`)."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "size": sheet.size,
        "whole": sheet.whole,
        "made": dict(made),
        "machine": sheet.machine.facts(),
        "ceilings": [_ceilings_facts(ceilings) for ceilings in sheet.ceilings],
        "heats": [_heat_facts(heat) for heat in sheet.heats],
        "means": [_mean_facts(mean) for mean in means(sheet.heats)],
        "notes": list(sheet.remarks),
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


def _heat_facts(heat: Heat) -> dict[str, Any]:
    return {
        "kernel": heat.kernel,
        "element": heat.element,
        "sizes": dict(heat.sizes),
        "ranks": heat.ranks,
        "threads": heat.threads,
        "flops": heat.flops,
        "bytes": heat.bytes,
        "best_peer": None if heat.best is None else heat.best.contestant,
        "ratio": heat.ratio,
        "least_ratio": heat.least_ratio,
        "lanes": [_lane_facts(heat, lane) for lane in heat.lanes],
    }


def _lane_facts(heat: Heat, lane: Lane) -> dict[str, Any]:
    median_s = lane.median_s if lane.seconds else None
    return {
        "contestant": lane.contestant,
        "ours": lane.is_ours,
        "seconds": list(lane.seconds),
        "median_s": median_s,
        "least_s": min(lane.seconds, default=None),
        "compile_s": lane.compile_s if lane.seconds else None,
        "ratio": heat.ratio_to(lane),
        "flops_per_s": None if median_s is None else heat.flops / median_s,
        "bytes_per_s": None if median_s is None else heat.bytes / median_s,
        "roofline": heat.roofline(lane),
        "fault": lane.fault or None,
        "note": lane.note or None,
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
