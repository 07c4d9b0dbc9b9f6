"""The program of a `ForkServer`: it imports all modules, and forks a program for each order."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from prefect import cli
from prefect.context import refresh_global_settings_context

import flows.deploy_model
import flows.reconcile_fleet
import flows.retire_model  # noqa: F401  (so that no command has to)
from moorage.adapters.files.pretrained import read_config
from moorage.adapters.prefect import api_server
from moorage.adapters.prefect.home_server import CLIENT_DEFAULTS
from moorage.adapters.prefect.run_processes import late_imports
from moorage.adapters.system.garbage import look_for_garbage_rarely
from moorage.cli import output
from moorage.cli.app import TARGETS, app
from moorage.cli.forked_command import EarlySettings, leave, prepare_to_fork
from moorage.common.failures import Cause, Failure
from tests.e2e.interrupted import arm
from tests.fork_server import (
    COMMAND,
    FAILS,
    KILLS,
    MESSAGE_BYTES,
    PREFECT,
    PREFECT_SERVER,
    SERVICE,
    STOPS,
)
from tests.outages import kill_whole

MOST_FILES = 4
"""Most files of an order: the answer's socket, standard output, error and input."""


def main(number: int) -> None:
    """Fork programs until the orders' socket is closed.

    Args:
        number: File descriptor of the socket for orders; each order has a socket for answers and
            two or three files.
    """
    look_for_garbage_rarely()
    for name in ("flows.rollback_model", "prefect.server.api.server", "uvicorn", *late_imports()):
        import_module(name)
    for name, target in TARGETS.items():
        target.load(name)
    # In a home without this model: else transformers is not imported.
    with TemporaryDirectory() as folder, patch.dict(os.environ, MOORAGE_HOME=folder):
        Path(folder, "config.json").write_text('{"model_type": "llama"}')
        read_config(Path(folder), trust_remote_code=False)
    prepare_to_fork()
    early = EarlySettings.of(os.environ, Path.cwd())
    orders, running = socket.socket(fileno=number), dict[int, tuple[int, socket.socket]]()
    ready = selectors.DefaultSelector()
    ready.register(orders, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is not orders:
                ready.unregister(key.fileobj)
                _answer(int(key.fd), *running.pop(key.fd))
                continue
            message, files, _, _ = socket.recv_fds(orders, MESSAGE_BYTES, MOST_FILES)
            if not message:
                return
            child = os.fork()
            if not child:
                ready.close()
                for _, answers in running.values():
                    answers.close()
                orders.close()
                _become(json.loads(message), early, *files)
            running[_watched(child, ready)] = child, _begun(child, files)


def _watched(child: int, ready: selectors.BaseSelector) -> int:
    number = os.pidfd_open(child)
    ready.register(number, selectors.EVENT_READ)
    return number


def _begun(child: int, files: list[int]) -> socket.socket:
    """Send the process id, and close this process's copies of the child's files."""
    answers = socket.socket(fileno=files[0])
    for file in files[1:]:
        os.close(file)
    answers.sendall(f"{child}\n".encode())
    return answers


def _answer(number: int, child: int, answers: socket.socket) -> None:
    """Send the exit status of a program that has ended."""
    os.close(number)
    _, status = os.waitpid(child, 0)
    with answers:
        answers.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(order: dict[str, Any], early: EarlySettings, answers: int, *files: int) -> None:
    """Run the program in this process; `files` are its standard output, error and maybe input."""
    os.close(answers)
    for number, file in zip((1, 2, 0), files, strict=False):
        os.dup2(file, number)
        os.close(file)
    _sit_at_terminal()
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    if order["program"] == COMMAND:
        _adopt_settings(early)
    else:
        refresh_global_settings_context()
    if order["point"]:
        victim = order["victim"]
        arm(order["point"], (lambda: kill_whole(victim)) if victim else HAPPENS[order["how"]])
    for number, seconds in order["signals"]:
        clock = threading.Timer(seconds, os.kill, (os.getpid(), number))
        clock.daemon = True
        clock.start()
    leave(partial(PROGRAMS[order["program"]], order["arguments"]))


def _sit_at_terminal() -> None:
    """Adapt the output to a terminal: the imports set it up before the streams were known."""
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    for console in (output.out, output.err):
        if console.is_terminal:
            console.width = os.get_terminal_size(console.file.fileno()).columns


def _adopt_settings(early: EarlySettings) -> None:
    """Give Prefect a command's settings; they are read only if they differ, since that is slow."""
    for name, value in CLIENT_DEFAULTS.items():
        os.environ.setdefault(name, value)
    if EarlySettings.of(os.environ, Path.cwd()) != early:
        refresh_global_settings_context()


def _leads(program: Callable[[list[str]], object]) -> Callable[[list[str]], object]:
    """The program as the leader of its own session."""

    def led(arguments: list[str]) -> None:
        os.setsid()
        program(arguments)

    return led


def _moorage(arguments: list[str]) -> None:
    app(arguments, prog_name="moorage")


def _prefect(arguments: list[str]) -> None:
    sys.argv[1:] = arguments
    cli.app()


def _fail() -> None:
    raise Failure(Cause.LAUNCH_REFUSED, "the test has it fail here")


PROGRAMS: dict[str, Callable[[list[str]], object]] = {
    COMMAND: _moorage,
    SERVICE: _leads(_moorage),
    PREFECT: _prefect,
    PREFECT_SERVER: _leads(api_server.main),
}

HAPPENS: dict[str, Callable[[], None] | None] = {
    KILLS: None,
    FAILS: _fail,
    STOPS: lambda: os.kill(os.getpid(), signal.SIGTERM),
}


if __name__ == "__main__":
    main(int(sys.argv[1]))
