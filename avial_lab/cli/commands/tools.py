"""`avial-lab demo`, `doctor` and `bench`."""

from __future__ import annotations

import argparse

from avial_lab.benchmarks.command import race_command
from avial_lab.benchmarks.results_page import page_command
from avial_lab.benchmarks.worth_command import worth_command
from avial_lab.core.errors import BindError


def demo_command(options: argparse.Namespace) -> int:
    from avial_lab.lessons.demo import demo

    return demo(options.report, picture_path=options.picture)


def doctor_command(options: argparse.Namespace) -> int:
    from avial_lab.cli import doctor
    from avial_lab.cli.doctor_hosts import examine_hosts

    found = examine_hosts(options.hosts) if options.hosts else None
    return doctor.main(["--json"] if options.json else [], found)


def bench_command(options: argparse.Namespace) -> int:
    if options.plan:
        if options.kernels:
            raise BindError(
                f"bench --plan measures the planner, not {options.kernels[0]}",
                hint="leave one out",
            )
        from avial_lab.benchmarks.plan_bench import bench_plan

        return bench_plan()
    if options.arrays:
        from avial_lab.benchmarks.array_race import arrays_command

        return arrays_command(options)
    if options.python:
        from avial_lab.benchmarks.python_race import python_command

        return python_command(options)
    if options.predict:
        from avial_lab.benchmarks.predict_bench import bench_predict

        return bench_predict(options.kernels, options.size, options.ranks)
    if options.page:
        return page_command(options)
    if options.passes:
        return worth_command(options)
    if options.seconds is not None:
        raise BindError("--seconds is for bench --passes", hint="leave it out, or add --passes")
    if not options.only_self:
        return race_command(options)
    if options.kernels:
        raise BindError(
            f"bench --self measures avial_lab itself, not {options.kernels[0]}",
            hint="leave one out",
        )
    from avial_lab.benchmarks.self_bench import bench_self

    return bench_self(json_to=options.json, given=options.given)
