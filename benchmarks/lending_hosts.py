"""Two ways for a host of a fleet to offer a model's files to another host, on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.adapters.transfer.bring_model import LENDER
from tests.fleet.keys import make_ssh_key
from tests.fleet.sshd import Sshd
from tests.prefect_server import free_port

TOKEN, LOOPBACK = "a-token", "127.0.0.1"
IDLE_SECONDS = 3600
SSHD = Path("/usr/sbin/sshd")


@contextmanager
def lending(repository: Path) -> Iterator[str]:
    """A host that lends all files of a folder, as in a deploy; yields its address."""
    files = [path.name for path in repository.iterdir()]
    order = {"folder": str(repository), "files": files, "bind": LOOPBACK, "ports": [0]}
    command = [sys.executable, "-I", "-c", LENDER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lender:
        assert lender.stdin
        assert lender.stdout
        try:
            lender.stdin.write(json.dumps({**order, "token": TOKEN, "idle": IDLE_SECONDS}) + "\n")
            lender.stdin.flush()
            yield f"http://{LOOPBACK}:{json.loads(lender.stdout.readline())['port']}"
        finally:
            lender.kill()


@contextmanager
def ssh_server(folder: Path) -> Iterator[list[str]]:
    """An SSH server for this user; yields options for its clients, none without a server."""
    if not SSHD.exists():
        yield []
        return
    key, port = make_ssh_key(folder / "key"), free_port()
    server = Sshd(LOOPBACK, folder, key.with_suffix(".pub"), port=port)
    try:
        server.start()
        unchecked = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
        options = ("LogLevel=ERROR", f"Port={port}", f"IdentityFile={key}", *unchecked)
        yield [word for option in options for word in ("-o", option)]
    finally:
        server.stop()
