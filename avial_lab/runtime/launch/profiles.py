"""What is added to clusters that a profile of ipyparallel's starts, so that they end with their
owner.

    this process ──► guardian ──► controller, mpiexec (where they are processes here), hub
                                                                                       ▲
    node:   engine = MPI rank, started by the profile's launcher ── starts ──► relay ──┘

The relays (relay.py) bring the ranks' journals, and end them when the hub goes, or falls silent.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipyparallel
import psutil
from ipyparallel.cluster import launcher

from avial_lab.core.errors import ClusterError
from avial_lab.runtime.launch.guardian import Guardian
from avial_lab.runtime.launch.hosts import Hub, address_towards, start_hub
from avial_lab.runtime.rank import relay

_ASK_S = 30.0


def process_here(one: launcher.BaseLauncher) -> psutil.Process | None:
    """What a launcher has started, where that is on this machine: neither by ssh nor by a batch
    system.
    """
    if isinstance(one, launcher.SSHLauncher) or not isinstance(one, launcher.LocalProcessLauncher):
        return None
    return one.process


def accompany(
    client: ipyparallel.Client, folder: Path, guardian: Guardian, *, lease_s: float
) -> Hub | None:
    """A relay beside every engine; None where all are on this machine, and the guardian reaches
    them. ClusterError where one cannot connect to this machine: nobody could end it.
    """
    views = [client[k] for k in sorted(client.ids)]
    names = [view.apply_async(socket.gethostname) for view in views]
    nodes = dict.fromkeys(name.get(timeout=_ASK_S) for name in names)
    if set(nodes) <= {socket.gethostname()}:
        return None
    nonce = secrets.token_hex(16)
    token = _token(client.session.key, nonce)
    hub = start_hub(
        folder, None, address_towards(list(nodes)), guardian, lease_s=lease_s, token=token
    )
    where = hub.environment[relay.HUB].replace(token, "{}")
    answers: list[Any] = [view.apply_async(Accompany(where, nonce)) for view in views]
    refused = next((why for answer in answers if (why := answer.get(timeout=_ASK_S))), "")
    if refused:
        raise ClusterError(
            f"an engine cannot be accompanied: {refused}",
            hint="engines connect to this machine, which ends them; start the profile's cluster "
            "with `ipcluster start` and connect to it where they are to be on their own",
        )
    return hub


def _token(key: bytes, nonce: str) -> str:
    """Made on both sides of the key that signs ipyparallel's messages: it never travels."""
    return hmac.digest(key, f"avial-lab relay {nonce}".encode(), "sha256").hex()


@dataclass(frozen=True)
class Accompany:
    """Starts a relay beside the engine that is asked. -> why there is none; empty where there is.

    hub: as in a rank's environment (`relay.HUB`), with `{}` for the token.
    """

    hub: str
    nonce: str

    def __call__(self) -> str:
        from ipyparallel.engine.app import IPEngine
        from mpi4py import MPI

        key = IPEngine.instance().session.key
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", relay.__file__, "beside", str(MPI.COMM_WORLD.rank)],
            env=os.environ | {relay.HUB: self.hub.format(_token(key, self.nonce))},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", cwd="/", start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        folder = process.stdout.readline().strip()
        if not folder:
            return process.communicate()[1].strip() or "its relay has ended"
        os.environ[relay.FOLDER] = folder
        _beside.append(process)
        return ""


_beside: list[subprocess.Popen[str]] = []
"""Of this engine: its pipes stay open."""
