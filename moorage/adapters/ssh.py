"""Tunnels to remote Docker sockets through the `ssh` program of this machine.

The user's SSH configuration, agent and jump hosts apply. One connection carries any number of
requests: servers allow few sessions, but a forwarded socket is not a session.
"""

import atexit
import contextlib
import math
import os
import re
import selectors
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from moorage.adapters.secrets import read_secrets
from moorage.adapters.system.os_errors import NETWORK_ERRORS, ErrorText, failure_of
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access

CONNECT_SECONDS = 10
OPEN_SECONDS = 30.0
"""Limit for the login and the remote shell, which may hang if the home is on the network."""

END_SECONDS = 1.0
"""How long to wait for the last errors of `ssh`; a program that it started may outlive it."""

LONGEST_ERRORS = 64 * 1024
"""Bytes of errors that are kept: the host, too, may print any number."""

ALIVE_SECONDS = 5
ALIVE_MISSES = 2
"""A lost connection is noticed after about `ALIVE_SECONDS * ALIVE_MISSES`; its requests fail."""

OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": str(CONNECT_SECONDS),
    "ServerAliveInterval": str(ALIVE_SECONDS),
    "ServerAliveCountMax": str(ALIVE_MISSES),
    # The user's configuration may forward ports that another session already uses. The tunnel does
    # not need them, and its own socket is checked.
    "ExitOnForwardFailure": "no",
    "ControlPath": "none",
    "RemoteCommand": "none",
}

OPEN = b"open"
"""Output of the remote shell when it is ready; its start-up files may print other text before."""

ERRORS = (
    ErrorText(
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        Cause.HOST_UNTRUSTED,
        "The host shows another key than the known one. If it was set up again, replace its line"
        " in the file of known hosts.",
    ),
    ErrorText(
        "Host key verification failed",
        Cause.HOST_UNTRUSTED,
        "Add its key to the file of known hosts, after checking it: `ssh-keyscan HOST`.",
    ),
    ErrorText(
        "Permission denied",
        Cause.HOST_UNAUTHORIZED,
        "Check the user in the address, and that the key is in its authorized_keys.",
    ),
    ErrorText(
        "is not there or not writable",
        Cause.RUNTIME_UNAVAILABLE,
        "Start Docker there, and let the user of the address use it (group `docker`).",
    ),
    *NETWORK_ERRORS,
)

UNREADABLE_KEY = re.compile(r'^Load key "(?P<file>.*)": (?P<reason>.+)$', re.MULTILINE)
"""What `ssh` says of a key file that it cannot read. It then tries to log in without it."""


class Tunnel:
    """A local socket, forwarded to a remote daemon's socket at an `ssh://` address.

    Raises:
        Failure: `HOST_UNTRUSTED`, `HOST_UNAUTHORIZED` or `RUNTIME_UNAVAILABLE`.
    """

    def __init__(self, access: Access) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="moorage-ssh-"))
        self.socket = self._folder / "docker.sock"
        try:
            self._process = self._open(access)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def is_open(self) -> bool:
        """Whether the `ssh` process of the tunnel runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Close the tunnel, and abort all its requests."""
        self._end(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self, access: Access) -> subprocess.Popen[bytes]:
        with _private_key(access) as key:
            try:
                process = subprocess.Popen(
                    _command(access, self.socket, key),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                )
            except FileNotFoundError:
                raise Failure(
                    Cause.PROGRAM_MISSING,
                    "`ssh` is not installed on this machine",
                    suggestion="Install the OpenSSH client.",
                ) from None
            self._errors = bytearray()
            self._reader = threading.Thread(target=self._read_errors, args=[process], daemon=True)
            self._reader.start()
            late = _wait_for_shell(process, OPEN_SECONDS)
            if late is not None or not self.socket.is_socket():
                output = self._end(process)
                raise _failure(access, f"{output}\n{late or ''}")
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> str:
        """Kill `ssh`; returns the end of its errors."""
        with process:  # closes its streams, and waits
            process.kill()
            self._reader.join(END_SECONDS)
            return self._errors.decode(errors="replace")

    def _read_errors(self, process: subprocess.Popen[bytes]) -> None:
        """Keep the end of the errors of `ssh` and its host: a full pipe would stop it."""
        assert process.stderr
        with contextlib.suppress(OSError, ValueError):  # the tunnel was closed
            while piece := process.stderr.read(LONGEST_ERRORS):
                self._errors += piece
                del self._errors[:-LONGEST_ERRORS]


class Tunnels:
    """The tunnels of this process, opened on demand and reopened after a break."""

    def __init__(self) -> None:
        self._tunnels: dict[Access, Tunnel] = {}
        self._locks: dict[Access, threading.Lock] = {}
        self._failed: dict[Access, tuple[float, Failure]] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    def socket(self, access: Access) -> Path:
        """The local socket of a daemon's tunnel. Only callers for the same daemon wait.

        Raises:
            Failure: As `Tunnel`. Callers that waited for a failed attempt share its failure.
        """
        since = time.monotonic()
        with self._lock:
            lock = self._locks.setdefault(access, threading.Lock())
        with lock:
            tunnel = self._tunnels.get(access)
            if tunnel is None or not tunnel.is_open:
                if tunnel:
                    tunnel.close()
                tunnel = self._tunnels[access] = self._open_or_share(access, since)
            return tunnel.socket

    def close(self) -> None:
        """Close all tunnels."""
        for tunnel in self._tunnels.values():
            tunnel.close()
        self._tunnels.clear()

    def _open_or_share(self, access: Access, since: float) -> Tunnel:
        at, failed = self._failed.get(access, (-math.inf, None))
        if failed and at >= since:
            raise Failure(failed.cause, failed.detail, suggestion=failed.suggestion)
        try:
            return Tunnel(access)
        except Failure as failure:
            self._failed[access] = (time.monotonic(), failure)
            raise


TUNNELS = Tunnels()
"""The tunnels of this process."""


def _command(access: Access, socket: Path, key: str) -> list[str]:
    options = dict(OPTIONS)
    if access.known_hosts:
        options |= {"UserKnownHostsFile": access.known_hosts, "GlobalKnownHostsFile": os.devnull}
    if key:
        options |= {"IdentityFile": key, "IdentitiesOnly": "yes"}
    there = shlex.quote(access.socket)
    # When this process exits, even killed, the input of the shell ends, and the shell exits.
    script = (
        f"[ -w {there} ] || {{ echo {there} is not there or not writable >&2; exit 1; }};"
        f" echo {OPEN.decode()}; exec cat >/dev/null"
    )
    return [
        "ssh",
        "-T",
        *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        *(("-p", str(access.port)) if access.port else ()),
        *("-L", f"{socket}:{access.socket}"),
        # The user's shell may be fish or csh, whose grammar differs.
        *("--", access.login, f"exec sh -c {shlex.quote(script)}"),
    ]


def _wait_for_shell(process: subprocess.Popen[bytes], seconds: float) -> str | None:
    """Wait for the remote shell; None = ready, else the reason, empty if `ssh` reports it."""
    assert process.stdout
    out, output, until = process.stdout.fileno(), b"", time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting:
        waiting.register(out, selectors.EVENT_READ)
        while waiting.select(max(0.0, until - time.monotonic())):
            piece = os.read(out, 4096)
            output = output[-len(OPEN) - 1 :] + piece
            if OPEN in output.splitlines():
                return None
            if not piece:
                return ""
    return f"the shell there timed out: it was silent for {seconds:g} s"


@contextlib.contextmanager
def _private_key(access: Access) -> Iterator[str]:
    """The path of a file with the private key, in memory on Linux; empty without a secret."""
    if not access.key:
        yield ""
        return
    key = read_secrets([access.key])[access.key].strip() + "\n"
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key")
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="moorage-key-")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, key.encode())
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            Path(path).unlink()


def _failure(access: Access, output: str) -> Failure:
    key = UNREADABLE_KEY.search(output)
    if key and "Permission denied" in output:
        which = f"in secret {access.key}" if access.key else key["file"]
        return Failure(
            Cause.HOST_UNAUTHORIZED,
            f"{access.address}: the private key {which} cannot be read: {key['reason'].strip()}",
            suggestion="Put a private key in OpenSSH's form there.",
        )
    lines = [line.strip() for line in output.splitlines() if line.strip(" @\r")]
    detail = f"{access.address}: {lines[-1] if lines else 'the connection ended at once'}"
    return failure_of(output, detail, ERRORS, Cause.RUNTIME_UNAVAILABLE)
