"""The command `moorage`. Ctrl-C during the imports exits silently."""

import io
import signal
import sys


def main() -> None:
    """Entry point of the command; also `python -m moorage.cli`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path may hold bytes that are no text.
        sys.stdout.reconfigure(errors="backslashreplace")
    heard = signal.getsignal(signal.SIGINT)
    if heard is signal.default_int_handler:
        # Importing the commands takes a second, in which nothing has been begun.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from moorage.cli.app import app  # noqa: PLC0415

    signal.signal(signal.SIGINT, heard)
    app()


if __name__ == "__main__":
    main()
