"""Become a command, in a fork of the fork server, which has done the imports."""

import atexit
import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, TextIO, cast

from pydantic import BaseModel

from moorage.adapters.prefect.home_server import CLIENT_DEFAULTS
from moorage.adapters.prefect.settings_files import FileSettings, settings_in_files
from moorage.cli import forked
from moorage.cli.forked import ACCEPTED, HANDED_ON, HEADER_BYTES

EARLY = (
    *("MOORAGE_TASK_RUNNER", "PREFECT_", "RAY_", "HF_", "HUGGINGFACE_", "TRANSFORMERS_"),
    *("PYTHON", "HOME", "LANG", "LC_", "TZ", "XDG_CACHE_", "XDG_CONFIG_", "XDG_DATA_"),
    # Typer's help.
    *("TERMINAL_WIDTH", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "_TYPER_"),
)
"""Prefixes of variables that are read during imports; all others are read by the command."""

ORDER_SECONDS, ORDER_BYTES = 5.0, 4 << 20
FILES = 4
"""Descriptors that come with an order: standard input, output, error, and the current folder."""


@dataclass(frozen=True)
class EarlySettings:
    """Settings that are read during imports: environment variables, and Prefect's files."""

    variables: Mapping[str, str]
    prefect: FileSettings

    @classmethod
    def of(cls, environment: Mapping[str, str], folder: Path) -> Self:
        """The early settings of a command with these variables in this folder."""
        found = {name: value for name, value in environment.items() if name.startswith(EARLY)}
        return cls({**CLIENT_DEFAULTS, **found}, settings_in_files(folder, environment))


def prepare_to_fork() -> None:
    """Do the work of every fork once: build validators, exempt objects from garbage collection."""
    for model in _models_below(BaseModel):
        if not model.__pydantic_complete__:
            model.model_rebuild(raise_errors=False)
    gc.freeze()
    assert threading.active_count() == 1, "what has threads cannot be forked"


def become(connection: socket.socket, early: EarlySettings) -> NoReturn:
    """Run the command that arrives on a connection, unless its code or early settings differ."""
    os.setsid()
    connection.settimeout(ORDER_SECONDS)
    order, files = _received(connection)
    folder = Path(f"/proc/self/fd/{files[-1]}")
    same_code = order["code"] == [sys.executable, forked.__file__]
    if not same_code or EarlySettings.of(order["environment"], folder) != early:
        os._exit(0)
    _take(files)
    os.umask(order["umask"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = order["arguments"]
    _hear_signals(ignored=order["ignored"])
    socket.send_fds(connection, [ACCEPTED], [os.pidfd_open(os.getpid())])
    connection.close()
    leave(_run)


def leave(program: Callable[[], object]) -> NoReturn:
    """Run a program and exit as the interpreter would.

    Skips only the destruction of every object, which takes a second for a million objects.
    """
    code = _exit_status(program)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _models_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for below in model.__subclasses__():
        yield below
        yield from _models_below(below)


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    header, files, _, _ = socket.recv_fds(connection, HEADER_BYTES, FILES)
    size = int.from_bytes(header, "big")
    if len(files) != FILES or size > ORDER_BYTES:
        os._exit(0)
    with connection.makefile("rb") as content:
        return json.loads(content.read(size)), files


def _take(files: list[int]) -> None:
    """Use these descriptors as standard streams, and the last one as the current folder."""
    for number, file in enumerate(files[:-1]):
        os.dup2(file, number)
    os.fchdir(files[-1])
    for file in files:
        os.close(file)
    # New objects, since the inherited ones cache whether their file is a terminal and seekable.
    sys.stdin = _stream(0, "r", sys.stdin)
    sys.stdout, sys.stderr = (_stream(n, "w", one) for n, one in ((1, sys.stdout), (2, sys.stderr)))


def _stream(number: int, mode: str, before: TextIO) -> TextIO:
    """A standard stream as the interpreter opens it, with line-buffered standard error."""
    buffering = 1 if number == 2 else -1
    stays = open(number, mode, buffering, before.encoding, before.errors, closefd=False)  # noqa: SIM115
    return cast("TextIO", stays)


def _hear_signals(*, ignored: list[int]) -> None:
    """Handle signals as a new interpreter does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in HANDED_ON:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in ignored else usual)


def _run() -> None:
    from moorage.cli.__main__ import run_here  # noqa: PLC0415  (looks at the terminal)

    run_here()


def _exit_status(program: Callable[[], object]) -> int:
    try:
        program()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # as the interpreter does
        traceback.print_exc()
        return 1
    return 0
