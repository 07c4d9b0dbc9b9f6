"""The fork server: the process that commands are forked off, which has done the slow imports.

    python -m moorage.cli.fork_server HOME PID LOCK IDLE_SECONDS

A command that ran a flow on a lasting Prefect server starts this process when it exits, and so does
a slow command on a terminal. The process exits with the server of this home; without one, when its
home is removed or no command has used it for a while. It listens in the home's private folder, to
processes of its own user in the same surroundings. It exits at once when the code on the disk is
not the imported code. Each fork imports the command's own module, which inspects the terminal.
"""

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO

from moorage.adapters.files.pretrained import import_transformers
from moorage.adapters.files.safe_files import open_private, provide_private_folder
from moorage.adapters.prefect.home_server import CLIENT_DEFAULTS, running_server
from moorage.adapters.system.garbage import look_for_garbage_rarely
from moorage.adapters.system.process import INTERPRETER
from moorage.adapters.system.settings import Settings
from moorage.adapters.system.surroundings import surroundings
from moorage.cli.forked import FOLDER, SOCKET
from moorage.cli.forked_command import EarlySettings, become, leave, prepare_to_fork
from moorage.common.failures import Failure

MODULES = (
    *("flows.apply_models", "flows.deploy_model", "flows.dry_run", "flows.redeploy_models"),
    *("flows.reconcile_fleet", "flows.retire_model", "flows.rollback_model"),
    *("moorage.adapters.prefect.api_login", "moorage.adapters.prefect.run_processes"),
    *("rich.progress", "typer.rich_utils"),
)
"""Modules that commands import, in addition to the `late_imports` of flows."""

OURS = [Path(__file__).parents[2] / name for name in ("moorage", "flows", "tasks")]
LOCK, LOG = "commands.lock", "commands.log"
NOBODY = 0
"""Instead of the pid of this home's server: no flow has run yet, or flows use another server."""

LOOK_SECONDS = 5.0
"""How often the process checks that its home exists, if it does not exit with a server."""

LOCK_SECONDS, POLL_SECONDS = 1.0, 0.01
SETTLED_SECONDS = 60.0
"""Age below which the process is not replaced, since several commands may exit at once."""

CREDENTIALS = struct.Struct("3i")
"""Linux's credentials of the other end of a socket: process, user, group."""


def fork_later_commands(environment: Mapping[str, str], *, without_server: bool) -> None:
    """Have later commands with these variables forked, if the settings allow it.

    `without_server` is for flows that run without a server of this home.
    """
    settings = Settings()
    if settings.forked and settings.server == "kept":
        with contextlib.suppress(OSError, Failure):  # forking only makes commands faster
            idle_seconds = settings.server_idle_seconds if without_server else None
            start_fork_server(settings.root, environment, idle_seconds)


def start_fork_server(
    home: Path, environment: Mapping[str, str], idle_seconds: float | None
) -> None:
    """Start the fork server for commands with these variables, unless it runs.

    Replaces a running fork server that did not fork this command, if older than `SETTLED_SECONDS`.

    Args:
        idle_seconds: Idle time after which it exits if no server of this home runs; None = do not
            start it without a server.

    Raises:
        OSError: When it cannot be started.
        Failure: `BAD_SETTING` when the home belongs to another user.
    """
    server = running_server(home)
    if server is None and idle_seconds is None:
        return
    provide_private_folder(home / FOLDER)
    with open_private(home / FOLDER / LOCK, "a+") as lock:
        if not _take(lock) and not _take_from_other(lock):
            return
        pid, number = server.process.pid if server else NOBODY, lock.fileno()
        words = map(str, (home, pid, number, idle_seconds or 0))
        with open_private(home / FOLDER / LOG, "w") as log:
            process = subprocess.Popen(
                [*INTERPRETER, "-m", __name__, *words],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[number],  # it inherits the lock
                start_new_session=True,  # it outlives this command and its terminal
            )
        lock.truncate(0)
        lock.write(str(process.pid))


def fork_server_process(home: Path) -> int:
    """The pid of this home's fork server; 0 = none runs."""
    try:
        with open_private(home / FOLDER / LOCK, "r") as lock:
            return 0 if _take(lock) else _holder(lock)
    except FileNotFoundError:
        return 0


def stop_fork_server(home: Path) -> None:
    """Stop this home's fork server; commands that it has forked continue."""
    if process := fork_server_process(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)


def main(home: Path, server: int, lock: int, idle_seconds: float) -> None:
    """Fork commands until the home's server exits, none has come for long, or the code changes.

    Args:
        server: Pid of the home's server, or `NOBODY`.
        lock: File descriptor of the lock, which this process holds.
        idle_seconds: How long it waits for a command if `server` is `NOBODY`.
    """
    early, code = EarlySettings.of(os.environ, Path.cwd()), _code()
    os.set_inheritable(lock, False)
    _import_all(home)
    os.chdir("/")  # whoever removes or unmounts the folder of the first command may do so
    forking = ForkServer(home / FOLDER / SOCKET, lock, early, code)
    forking.run(server, None if server else idle_seconds)


class ForkServer:
    """Forks a command for each connection, receives its order there, and sends its exit status.

    It listens at the address, and releases the lock once it takes no more orders. The settings and
    the code (`_code`) are those before the imports.
    """

    def __init__(
        self, address: Path, lock: int, early: EarlySettings, code: tuple[int, ...]
    ) -> None:
        self._address, self._lock = address, lock
        self._early, self._code = early, code
        self._surroundings = surroundings(os.getpid())
        self._commands: dict[int, socket.socket] = {}
        self._events, self._signals = select.epoll(), _heard(signal.SIGTERM, signal.SIGCHLD)
        address.unlink(missing_ok=True)
        self._listening = socket.socket(socket.AF_UNIX)
        with contextlib.chdir(address.parent):  # the address of a socket has 107 bytes at most
            self._listening.bind(address.name)
        self._listening.listen()

    def run(self, server: int, idle_seconds: float | None) -> None:
        """Take orders as `main` says; then wait for the commands that still run.

        `idle_seconds` counts only while no command runs; None = forever.
        """
        ending = os.pidfd_open(server) if server else None
        for number in filter(None, (ending, self._signals, self._listening.fileno())):
            self._events.register(number, select.EPOLLIN)
        while self._is_open or self._commands:
            happened = self._wait(None if self._commands else idle_seconds)
            if not happened:
                self._close()
            for number, _ in happened:
                if self._is_open and number == self._listening.fileno():
                    self._accept()
                elif number == ending:
                    self._events.unregister(number)
                    self._close()
                elif number == self._signals:
                    if signal.SIGTERM in os.read(self._signals, signal.NSIG):
                        self._close()
                    self._reap()
                else:
                    self._hang_up(number)

    def _wait(self, seconds: float | None) -> list[tuple[int, int]]:
        """The next events; empty after `seconds` or when the home is removed. None = no limit."""
        if seconds is None:
            return self._events.poll()
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0 and self._address.exists():
            if happened := self._events.poll(min(left, LOOK_SECONDS)):
                return happened
        return []

    @property
    def _is_open(self) -> bool:
        return self._listening.fileno() >= 0

    @property
    def _is_outdated(self) -> bool:
        try:
            return self._code != _code()
        except OSError:  # a file was removed during the check
            return True

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        if self._is_outdated:
            connection.close()
            self._close()
        elif not self._may_order(connection):
            connection.close()
        elif child := os.fork():
            self._commands[child] = connection
            self._events.register(connection, select.EPOLLRDHUP)
        else:
            self._forget()
            become(connection, self._early)

    def _may_order(self, connection: socket.socket) -> bool:
        """Whether the other end belongs to this user and has the same surroundings."""
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, user, _ = CREDENTIALS.unpack(found)
        with contextlib.suppress(OSError):
            return user == os.getuid() and surroundings(pid) == self._surroundings
        return False

    def _close(self) -> None:
        """Take no more orders, so that another fork server may take them."""
        if self._is_open:
            self._address.unlink(missing_ok=True)
            self._listening.close()
            os.close(self._lock)

    def _reap(self) -> None:
        """Send the exit status of ended commands to their callers."""
        while self._commands and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with self._commands.pop(ended[0]) as connection, contextlib.suppress(OSError):
                connection.send(str(os.waitstatus_to_exitcode(ended[1])).encode())

    def _hang_up(self, number: int) -> None:
        """End a command whose caller was killed."""
        for child, connection in self._commands.items():
            if connection.fileno() == number:
                self._events.unregister(connection)
                os.kill(child, signal.SIGTERM)

    def _forget(self) -> None:
        """Close, in a fork, the descriptors of the fork server."""
        signal.set_wakeup_fd(-1)
        self._events.close()
        if self._is_open:
            os.close(self._lock)
        for one in (self._listening, *self._commands.values()):
            one.close()


def _heard(*numbers: signal.Signals) -> int:
    """A file descriptor from which the numbers of later signals can be read."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reading


def _import_all(home: Path) -> None:
    look_for_garbage_rarely()
    for name, value in CLIENT_DEFAULTS.items():
        os.environ.setdefault(name, value)
    for name in MODULES:
        import_module(name)
    for name in import_module("moorage.adapters.prefect.run_processes").late_imports():
        import_module(name)
    import_transformers()
    if running := running_server(home):
        import_module("moorage.adapters.prefect.api_login").prepare_kept_server(running, home)
    prepare_to_fork()


def _code() -> tuple[int, ...]:
    """Modification times that change with the installed code."""
    packages = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    return (*(os.stat(one).st_mtime_ns for one in sorted(packages)), *_times_of_our_files())


def _times_of_our_files() -> Iterator[int]:
    for package in OURS:
        for folder, _, files in os.walk(package):
            for file in sorted(files):
                if file.endswith(".py"):
                    yield os.stat(os.path.join(folder, file)).st_mtime_ns


def _take(lock: IO[str]) -> bool:
    """Take a lock, until its file is closed, if it is free; returns whether it was."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_from_other(lock: IO[str]) -> bool:
    """Take the lock from a settled fork server that did not fork this command, and stop that."""
    age = time.time() - os.fstat(lock.fileno()).st_mtime
    if (other := _holder(lock)) in (0, os.getppid()) or age < SETTLED_SECONDS:
        return False
    os.kill(other, signal.SIGTERM)
    give_up = time.monotonic() + LOCK_SECONDS
    while not (taken := _take(lock)) and time.monotonic() < give_up:
        time.sleep(POLL_SECONDS)
    return taken


def _holder(lock: IO[str]) -> int:
    """The pid in the lock file; 0 = not yet written."""
    lock.seek(0)
    return int(lock.read() or 0)


if __name__ == "__main__":
    _, given, pid, descriptor, seconds = sys.argv
    leave(partial(main, Path(given), int(pid), int(descriptor), float(seconds)))
