"""Being a command, in a fork of the process that has imported what it needs."""

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
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from pydantic import BaseModel

from moorage.adapters.prefect.home_server import CLIENT_DEFAULTS, settings_files
from moorage.cli import forked
from moorage.cli.forked import ACCEPTED, HANDED_ON, HEADER_BYTES

EARLY = (
    *("MOORAGE_TASK_RUNNER", "PREFECT_", "RAY_", "HF_", "HUGGINGFACE_", "TRANSFORMERS_"),
    *("PYTHON", "HOME", "LANG", "LC_", "TZ", "XDG_CACHE_", "XDG_CONFIG_", "XDG_DATA_"),
    # Of Typer's help.
    *("TERMINAL_WIDTH", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "_TYPER_"),
)
"""How variables begin that are read while modules are imported; a command reads all others."""

ORDER_SECONDS, ORDER_BYTES = 5.0, 4 << 20
FILES = 4
"""That come with an order: standard input, output and error, and the current folder."""


PrefectSources = tuple[Mapping[str, str], tuple[tuple[int, ...], ...]]
"""What Prefect's settings were read from: variables, and which files as they were then."""


def prepare_to_fork() -> PrefectSources:
    """Do once what each fork would do: build the validators of all models, keep all objects.

    Returns:
        What the settings of this process were read from, for `adopt_settings`.
    """
    for model in _models_below(BaseModel):
        if not model.__pydantic_complete__:
            model.model_rebuild(raise_errors=False)
    gc.freeze()
    assert threading.active_count() == 1, "what has threads cannot be forked"
    return _prefect_sources()


def adopt_settings(before: PrefectSources) -> None:
    """Have Prefect's settings be those of this fork: reading them takes a tenth of a command.

    Args:
        before: What they were read from before the fork.
    """
    for name, value in CLIENT_DEFAULTS.items():
        os.environ.setdefault(name, value)
    if _prefect_sources() != before:
        import_module("prefect.context").refresh_global_settings_context()


def become(
    connection: socket.socket, environment: Mapping[str, str], settings: PrefectSources
) -> NoReturn:
    """Run the command that comes on a connection, unless it wants what was imported otherwise.

    Args:
        environment: The variables with which all was imported.
        settings: Of `prepare_to_fork`.
    """
    os.setsid()
    connection.settimeout(ORDER_SECONDS)
    order, files = _received(connection)
    if not _is_for_us(order, environment):
        os._exit(0)
    _take(files)
    os.umask(order["umask"])
    os.environ.clear()
    os.environ.update(order["environment"])
    adopt_settings(settings)
    sys.argv = order["arguments"]
    _hear_signals(ignored=order["ignored"])
    socket.send_fds(connection, [ACCEPTED], [os.pidfd_open(os.getpid())])
    connection.close()
    leave(_run)


def leave(program: Callable[[], object]) -> NoReturn:
    """Run a program, and end as the interpreter would.

    It would also take apart each object, which takes a second for a million of them.
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


def _prefect_sources() -> PrefectSources:
    found = {name: value for name, value in os.environ.items() if name.startswith("PREFECT_")}
    return {**CLIENT_DEFAULTS, **found}, tuple(_stamps())


def _stamps() -> Iterator[tuple[int, ...]]:
    """Which files of settings there are, and of when; a folder that is gone has none."""
    for file in settings_files(Path()):
        with suppress(OSError):
            seen = file.stat()
            yield seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    header, files, _, _ = socket.recv_fds(connection, HEADER_BYTES, FILES)
    size = int.from_bytes(header, "big")
    if len(files) != FILES or size > ORDER_BYTES:
        os._exit(0)
    with connection.makefile("rb") as content:
        return json.loads(content.read(size)), files


def _is_for_us(order: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    same_code = order["code"] == [sys.executable, forked.__file__]
    return same_code and _early(order["environment"]) == _early(environment)


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in environment.items() if name.startswith(EARLY)}
    return {**CLIENT_DEFAULTS, **found}


def _take(files: list[int]) -> None:
    """Have these as streams, and the last one as the current folder."""
    for number, file in enumerate(files[:-1]):
        os.dup2(file, number)
    os.fchdir(files[-1])
    for file in files:
        os.close(file)
    # Those of the process before know of their files whether they are terminals, and can be sought.
    sys.stdin = _stream(0, "r", sys.stdin)
    sys.stdout, sys.stderr = (_stream(n, "w", one) for n, one in ((1, sys.stdout), (2, sys.stderr)))


def _stream(number: int, mode: str, before: TextIO) -> TextIO:
    """A standard stream as the interpreter opens it: errors are written at once."""
    buffering = 1 if number == 2 else -1
    text = open(  # noqa: SIM115  (it stays open)
        number, mode, buffering, before.encoding, before.errors, closefd=False
    )
    return cast("TextIO", text)


def _hear_signals(*, ignored: list[int]) -> None:
    """Answer signals as a new interpreter does."""
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
    except BaseException:  # as the interpreter does it
        traceback.print_exc()
        return 1
    return 0
