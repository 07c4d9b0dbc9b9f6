"""The SSH server of a host: how `ssh://` addresses and copies reach it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.fleet.commands import run
from tests.fleet.keys import make_ssh_key

PORT = 22
NO_DAEMON = Path("/nowhere")
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
Subsystem sftp internal-sftp
SetEnv DOCKER_HOST=unix://{socket}
"""
"""`SetEnv` stands for the default socket, which on this machine belongs to another daemon."""


class Sshd:
    """Lets the holders of a key in.

    Args:
        address: Where it listens.
        folder: Its own.
        authorized: Public key that may enter.
        socket: Of the daemon that they talk to.
        port: Where it listens.
        entering: Words before a command that runs in its network; empty = in this one.
    """

    def __init__(
        self,
        address: str,
        folder: Path,
        authorized: Path,
        socket: Path = NO_DAEMON,
        *,
        port: int = PORT,
        entering: tuple[str, ...] = (),
    ) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        self._address, self._port, self._entering = address, port, entering
        self._folder = folder
        self._host_key = make_ssh_key(folder / "host")
        text = CONFIG.format(
            address=address, port=port, folder=folder, authorized=authorized, socket=socket
        )
        (folder / "config").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def known_host(self) -> str:
        """Its line in a file of known hosts."""
        key = self._host_key.with_suffix(".pub").read_text().split()
        return f"{self._address} {key[0]} {key[1]}\n"

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(self._folder / "config")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._entering, *command], stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            scan = run("ssh-keyscan", "-T", 1, "-p", self._port, self._address, check=False)
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
