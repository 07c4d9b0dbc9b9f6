"""The command `moorage`. Ctrl-C during the imports exits silently."""

import io
import os
import sys
import time
from collections.abc import Mapping
from types import ModuleType

from moorage.adapters.system.garbage import look_for_garbage_rarely
from moorage.cli import silently_interrupted
from moorage.cli.forked import SERVICES, run_forked

SLOW_SECONDS = 0.5
"""A person waits for a command that computes longer than this."""


def main() -> None:
    """Entry point of the command; also `python -m moorage.cli`."""
    if (status := run_forked(sys.argv[1:])) is not None:
        sys.exit(status)
    run_here()


def run_here() -> None:
    """Run the command of `sys.argv` in this process."""
    look_for_garbage_rarely()
    # Else pydantic reads the metadata of all installed packages to look for plugins of its own.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Else httpx imports what its own command line needs, which takes as long as the rest of it.
    sys.modules.setdefault("httpx._main", ModuleType("httpx._main"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path may hold bytes that are no text.
        sys.stdout.reconfigure(errors="backslashreplace")
    with silently_interrupted():
        from moorage.cli.app import app  # noqa: PLC0415

    environment = dict(os.environ)
    try:
        app(prog_name="moorage")
    finally:
        _have_slow_ones_forked(environment)


def _have_slow_ones_forked(environment: Mapping[str, str]) -> None:
    """Have later commands forked where a person had to wait for this one, on a terminal."""
    if {"server", *SERVICES}.intersection(sys.argv):
        return
    if time.process_time() > SLOW_SECONDS and os.isatty(1):
        from moorage.cli.fork_server import fork_later_commands  # noqa: PLC0415  (takes long)

        fork_later_commands(environment, without_server=True)


if __name__ == "__main__":
    main()
