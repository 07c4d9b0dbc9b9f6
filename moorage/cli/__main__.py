"""The command `moorage`. Ctrl-C during the imports exits silently."""

import io
import os
import sys

from moorage.adapters.system.garbage import look_for_garbage_rarely
from moorage.cli import silently_interrupted
from moorage.cli.forked import run_forked


def main() -> None:
    """Entry point of the command; also `python -m moorage.cli`."""
    look_for_garbage_rarely()
    if (status := run_forked(sys.argv[1:])) is not None:
        sys.exit(status)
    run_here()


def run_here() -> None:
    """Run the command of `sys.argv` in this process."""
    # Else pydantic reads the metadata of all installed packages to look for plugins of its own.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path may hold bytes that are no text.
        sys.stdout.reconfigure(errors="backslashreplace")
    with silently_interrupted():
        from moorage.cli.app import app  # noqa: PLC0415

    app(prog_name="moorage")


if __name__ == "__main__":
    main()
