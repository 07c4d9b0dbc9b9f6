"""Reading a stream whose connection may break without notice."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

SILENCE_SECONDS = 10.0
"""How long a stream may be silent before the other side is checked."""

MISSES = 3
"""Failed checks in a row before giving up. A daemon that unpacks a large layer is slow too."""

T = TypeVar("T")
Event = tuple[str, T | BaseException | None]


def follow(
    stream: Callable[[], Iterable[T]],
    ask: Callable[[], object],
    *,
    silence: float = SILENCE_SECONDS,
    misses: int = MISSES,
) -> Iterator[T]:
    """The items of a stream as they come.

    Args:
        stream: Opens it. It is read in a daemon thread, abandoned if the other side is lost.
        ask: Checks that the other side is alive, and raises when it is not.
        silence: Seconds without an item before a check.
        misses: How many checks in a row may fail.

    Raises:
        BaseException: What the stream raises, or what `ask` raised last.
    """
    events: queue.Queue[Event[T]] = queue.Queue()
    threading.Thread(target=_read, args=(stream, events), daemon=True).start()
    misses_in_row = 0
    while True:
        try:
            kind, what = events.get(timeout=silence)
        except queue.Empty:
            misses_in_row = _check_alive(ask, misses_in_row, misses)
            continue
        misses_in_row = 0
        if kind == "end":
            return
        if isinstance(what, BaseException):
            raise what
        yield what  # type: ignore[misc]


def _read(stream: Callable[[], Iterable[T]], events: queue.Queue[Event[T]]) -> None:
    try:
        for item in stream():
            events.put(("item", item))
    except BaseException as error:
        events.put(("error", error))
    else:
        events.put(("end", None))


def _check_alive(ask: Callable[[], object], misses_in_row: int, misses: int) -> int:
    try:
        ask()
    except Exception:
        if misses_in_row + 1 >= misses:
            raise
        return misses_in_row + 1
    return 0
