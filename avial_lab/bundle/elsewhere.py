"""What starts a bundle's programs elsewhere: a job of Slurm's, a container.

Ranks, nodes, time -> the text of a script.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTAINER = """\
# docker build -t program DIR                                        (or podman, buildah bud)
# docker run -v "$PWD:/data" -w /data program --in a=a.npy --out b=b.npy
# docker run -v "$PWD:/data" -w /data --entrypoint mpiexec program -n 2 python3 /bundle/run.py …
# All that it needs besides this folder are Debian's Python, NumPy and OpenMP runtime.
FROM debian:trixie-slim
RUN apt-get update \\
 && apt-get install -y --no-install-recommends python3 python3-numpy libomp5 \\
 && rm -rf /var/lib/apt/lists/* \\
 && ln -s /usr/lib/*/libomp.so.5 /usr/lib/libomp.so
COPY . /bundle
ENV PATH=/bundle/mpi/bin:$PATH HYDRA_LAUNCHER=fork HYDRA_RMK=user
ENTRYPOINT ["python3", "/bundle/run.py"]
"""
"""Tried by `python -m tests.bundle.container`."""

_JOB = """\
#!/bin/bash
# sbatch job.sh --in a=a.npy --out b=b.npy --trace t.json
# The files are those of the folder that it is submitted from, which all nodes have to see, and this
# folder, too.
{options}
set -e
job=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=//p')
folder=${{AVIAL_BUNDLE:-$(dirname "${{job%% --*}}")}}
srun --mpi=pmi2 --kill-on-bad-exit=1 --distribution=block python3 "$folder/run.py" "$@"
"""


@dataclass(frozen=True)
class Job:
    """ranks_per_node: None leaves it to Slurm. time: as Slurm writes it (1:00:00)."""

    name: str
    ranks_per_node: int | None = None
    time: str = ""
    partition: str = ""

    def script(self, ranks: int) -> str:
        nodes = self.ranks_per_node and -(-ranks // self.ranks_per_node)
        given = {
            "job-name": self.name,
            "ntasks": ranks,
            "nodes": nodes,
            "ntasks-per-node": self.ranks_per_node,
            "time": self.time,
            "partition": self.partition,
        }
        lines = [f"#SBATCH --{option}={value}" for option, value in given.items() if value]
        return _JOB.format(options="\n".join(lines))
