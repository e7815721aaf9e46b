"""The container recipe says what was tried (`python -m tests.bundle.container`)."""

from __future__ import annotations

from inline_snapshot import snapshot

from avial_lab.bundle.elsewhere import CONTAINER
from avial_lab.bundle.pack import PYTHONS
from tests.bundle.container import Recipe

PYTHON_OF = {"trixie": "3.13"}
"""Debian's Python of that release."""


def test_its_steps_are_those_that_were_tried() -> None:
    """After a change here, that has to be run again."""
    assert Recipe.of(CONTAINER).steps == snapshot(
        (
            "FROM debian:trixie-slim",
            "RUN apt-get update && apt-get install -y --no-install-recommends python3 "
            "python3-numpy libomp5 && rm -rf /var/lib/apt/lists/* && ln -s /usr/lib/*/libomp.so.5 "
            "/usr/lib/libomp.so",
            "COPY . /bundle",
            "ENV PATH=/bundle/mpi/bin:$PATH HYDRA_LAUNCHER=fork HYDRA_RMK=user",
            'ENTRYPOINT ["python3", "/bundle/run.py"]',
        )
    )


def test_its_python_has_mpi4py_in_the_bundle() -> None:
    _, release = Recipe.of(CONTAINER).image
    assert PYTHON_OF[release] in PYTHONS


def test_it_starts_what_a_bundle_has() -> None:
    recipe = Recipe.of(CONTAINER)
    assert recipe.said("COPY") == ". /bundle"
    assert recipe.entry == ["python3", "/bundle/run.py"]
    assert "PATH=/bundle/mpi/bin:$PATH" in recipe.said("ENV").split()
