"""The SSH server of a host: how `ssh://` addresses reach its daemon."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.fleet.commands import run
from tests.fleet.keys import make_ssh_key
from tests.fleet.network import Link

PORT = 22
START_SECONDS = 10

CONFIG = """\
ListenAddress {address}:{port}
HostKey {folder}/host
PidFile {folder}/sshd.pid
AuthorizedKeysFile {authorized}
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv DOCKER_HOST=unix://{socket}
"""
"""`SetEnv` stands for the default socket, which on this machine belongs to another daemon."""


class Sshd:
    """Lets the holders of a key talk to the daemon.

    Args:
        link: Where it listens.
        folder: Its own.
        authorized: Public key that may enter.
        socket: Of the daemon.
    """

    def __init__(self, link: Link, folder: Path, authorized: Path, socket: Path) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        self._link, self._folder = link, folder
        self._host_key = make_ssh_key(folder / "host")
        text = CONFIG.format(
            address=link.address, port=PORT, folder=folder, authorized=authorized, socket=socket
        )
        (folder / "config").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def known_host(self) -> str:
        """Its line in a file of known hosts."""
        key = self._host_key.with_suffix(".pub").read_text().split()
        return f"{self._link.address} {key[0]} {key[1]}\n"

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(self._folder / "config")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._link.entering, *command], stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            scan = run("ssh-keyscan", "-T", 1, self._link.address, check=False)
            if scan.stdout:
                return
            time.sleep(0.1)
        raise RuntimeError((self._folder / "log").read_text())

    def stop(self) -> None:
        """End it; connections that are open end with it."""
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None
