"""Two ways in which a host of a fleet has a model's files for another one, on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.adapters.transfer.bring_model import LENDER

TOKEN = "a-token"
IDLE_SECONDS = 3600
SSH_PORT = 22_022
SSHD = Path("/usr/sbin/sshd")
CONFIG = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/key
PidFile none
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


@contextmanager
def lending(repository: Path) -> Iterator[str]:
    """A host that lends all files of a folder, as a deploy lets it do; gives its address."""
    files = [path.name for path in repository.iterdir()]
    order = {"folder": str(repository), "files": files, "bind": "127.0.0.1", "ports": [0]}
    command = [sys.executable, "-I", "-c", LENDER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lender:
        assert lender.stdin
        assert lender.stdout
        try:
            lender.stdin.write(json.dumps({**order, "token": TOKEN, "idle": IDLE_SECONDS}) + "\n")
            lender.stdin.flush()
            yield f"http://127.0.0.1:{json.loads(lender.stdout.readline())['port']}"
        finally:
            lender.kill()


@contextmanager
def ssh_server(folder: Path) -> Iterator[list[str]]:
    """An SSH server that lets this user in; gives the options of its clients, none without one."""
    if not SSHD.exists():
        yield []
        return
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "config").write_text(CONFIG.format(port=SSH_PORT, folder=folder))
    with subprocess.Popen([SSHD, "-D", "-f", folder / "config"]) as server:
        try:
            while not _answers():
                time.sleep(0.1)
            unchecked = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
            options = ("LogLevel=ERROR", f"Port={SSH_PORT}", f"IdentityFile={key}", *unchecked)
            yield [word for option in options for word in ("-o", option)]
        finally:
            server.terminate()


def _answers() -> bool:
    scan = ["ssh-keyscan", "-p", str(SSH_PORT), "127.0.0.1"]
    return bool(subprocess.run(scan, capture_output=True, check=False).stdout)
