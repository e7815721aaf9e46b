"""`avial-lab bundle`: programs packed for machines where nothing is installed."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from avial_lab.bundle.elsewhere import Job
from avial_lab.bundle.pack import Given, pack
from avial_lab.cli.question import print_to_stderr
from avial_lab.core.errors import BindError
from avial_lab.program.inputs import parse_inputs, parse_numbers


def bundle_command(options: argparse.Namespace) -> int:
    if any(count < 1 for count in options.ranks):
        raise BindError("a program is packed for one rank at least")
    if options.ppn is not None and options.ppn < 1:
        raise BindError(
            f"{options.ppn} ranks on a node cannot run a program", hint="--ppn 1 or more"
        )
    contents = pack(
        options.output,
        options.programs,
        ranks=options.ranks,
        size=options.size,
        on=(options.on,) if options.on else (),
        given=_given(options),
        seed=options.seed,
        race=options.race,
        pythons=options.pythons,
        job=_job(options),
        command=shlex.join(["avial-lab", *options.given]),
        say=print_to_stderr,
    )
    if not contents.packed:
        raise BindError("nothing could be packed", hint="the reasons are above")
    folder = shlex.quote(str(options.output))
    if contents.cases:
        print(f"python3 {folder}/run.py --minutes 8 -o results")
    if contents.forms:
        ranks = max(form.ranks for form in contents.forms)
        started = f"mpiexec -n {ranks} " if ranks > 1 else ""
        print(f"{started}python3 {folder}/run.py --in a=a.npy --out b=b.npy --trace t.json")
        print(f"docker build -t program {folder}")
    if options.slurm_script:
        print(f"sbatch {folder}/job.sh --in a=a.npy --out b=b.npy --trace t.json")
    return 0


def _given(options: argparse.Namespace) -> Given:
    if not options.programs and (options.inputs or options.numbers or options.fn):
        raise BindError("--in, -D and --fn are for a program, and none is named")
    arrays, scalars = parse_inputs(options.inputs, seed=options.seed)
    numbers = scalars | parse_numbers(options.numbers)
    return Given(arrays, numbers, options.fn, options.cpu_target, options.ppn)


def _job(options: argparse.Namespace) -> Job | None:
    if not options.slurm_script:
        if options.time or options.partition:
            raise BindError("--time and --partition are for --slurm-script")
        return None
    if not options.programs:
        raise BindError("a job runs a program, and none is named", hint="bundle PROGRAM -o DIR")
    name = Path(options.programs[0]).stem
    return Job(name, options.ppn, options.time or "", options.partition or "")
