"""A bundle's container recipe, built and run for real: `python -m tests.bundle.container FOLDER`.

Root, Debian's registry, debootstrap and buildah (`apt-get install debootstrap buildah`) -> an image
of the recipe, whose program equals NumPy on 1 rank, 1 rank with 2 threads, and 2 ranks. FOLDER has
to hold 2 GB, and keeps what is made. The base image is made here, of the same packages, and has
the name that the recipe gives: no registry of images is needed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from avial_lab.bundle.pack import pack
from tests.bundle.test_bundle import STEPS

DEBIAN = "http://deb.debian.org/debian"


@dataclass(frozen=True)
class Recipe:
    """steps: instructions as the recipe has them (`RUN …`), of one line each."""

    steps: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Recipe:
        """The text of a Dockerfile, without comments, lines that go on joined."""
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        joined = "\n".join(lines).replace("\\\n", " ").splitlines()
        return cls(tuple(" ".join(line.split()) for line in joined if line.strip()))

    def said(self, word: str) -> str:
        """What follows the one instruction of that name."""
        (found,) = (step for step in self.steps if step.partition(" ")[0] == word)
        return found.partition(" ")[2]

    @property
    def image(self) -> tuple[str, str]:
        """Of Debian: its name and its release."""
        name = self.said("FROM")
        found = re.fullmatch(r"debian:(\w+)-slim", name)
        assert found is not None, name
        return name, found[1]

    @property
    def entry(self) -> list[str]:
        return json.loads(self.said("ENTRYPOINT"))


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0]).resolve()
    folder.mkdir(exist_ok=True)
    program, bundle = folder / "steps.mlir", folder / "bundle"
    program.write_text(STEPS)
    pack(bundle, [str(program)], on=("cpu",), race=False)
    recipe = Recipe.of((bundle / "Dockerfile").read_text(encoding="utf-8"))
    buildah = [
        "buildah", "--root", f"{folder}/images", "--runroot", f"{folder}/run",
        "--storage-driver", "vfs",
    ]  # fmt: skip
    name, release = recipe.image
    base = folder / release
    if not base.exists():
        _do("debootstrap", "--variant=minbase", release, str(base), DEBIAN)
    made = _do(*buildah, "from", "scratch").strip()
    _do(*buildah, "add", "-q", made, str(base), "/")
    _do(*buildah, "commit", "-q", made, f"docker.io/library/{name}")
    _do(*buildah, "bud", "--isolation", "chroot", "--pull-never", "-t", "program", str(bundle))
    container = _do(*buildah, "from", "--pull-never", "localhost/program").strip()
    data = folder / "data"
    data.mkdir(exist_ok=True)
    a = np.random.default_rng(0).random((20, 30))
    np.save(data / "a.npy", a)
    np.save(data / "b.npy", np.zeros_like(a))
    for _ in range(3):
        a[1:-1] = a[:-2] + a[2:]
    inside = [*buildah, "run", "--isolation", "chroot", "-v", f"{data}:/data"]
    inside += ["--workingdir", "/data", container, "--"]
    files = ["--in", "a=a.npy", "--in", "b=b.npy", "--out", "a=c.npy"]
    ways = {"1 rank": [], "2 threads": ["--threads", "2"]}
    runs = {way: [*recipe.entry, *options, *files] for way, options in ways.items()}
    runs["2 ranks"] = ["mpiexec", "-n", "2", *recipe.entry, *files]
    for way, command in runs.items():
        (data / "c.npy").unlink(missing_ok=True)
        said = _do(*inside, *command)
        right = np.array_equal(np.load(data / "c.npy"), a) and "OpenMP" not in said
        sys.stdout.write(f"{way}: {'right' if right else 'WRONG'}: {said}")
        if not right:
            return 1
    return 0


def _do(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
