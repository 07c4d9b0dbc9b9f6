"""The command line: parse, call a flow, render."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silently_interrupted() -> Iterator[None]:
    """Let Ctrl-C end the process at once while modules are imported: nothing has been begun."""
    heard = signal.getsignal(signal.SIGINT)
    if heard is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if heard is signal.default_int_handler:
            signal.signal(signal.SIGINT, heard)
