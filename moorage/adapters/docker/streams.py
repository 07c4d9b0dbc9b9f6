"""Following a stream that may fall silent for good: a connection that was cut says nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

SILENCE_SECONDS = 10.0
"""How long a stream may say nothing before the other side is asked whether it is there."""

MISSES = 3
"""How often it may not answer in a row; a daemon that unpacks a large layer is slow, too."""

T = TypeVar("T")
Said = tuple[str, T | BaseException | None]


def followed(
    stream: Callable[[], Iterable[T]],
    ask: Callable[[], object],
    *,
    silence: float = SILENCE_SECONDS,
    misses: int = MISSES,
) -> Iterator[T]:
    """The items of a stream as they come.

    Args:
        stream: Opens it; it is read in a thread that nobody waits for once the other side is lost.
        ask: Asks the other side for a sign of life; raises when there is none.
        silence: Seconds without an item before it is asked.
        misses: How many times in a row it may raise.

    Raises:
        BaseException: What the stream raises, or what `ask` raised last.
    """
    said: queue.Queue[Said[T]] = queue.Queue()
    threading.Thread(target=_read, args=(stream, said), daemon=True).start()
    missed = 0
    while True:
        try:
            kind, what = said.get(timeout=silence)
        except queue.Empty:
            missed = _asked(ask, missed, misses)
            continue
        missed = 0
        if kind == "end":
            return
        if isinstance(what, BaseException):
            raise what
        yield what  # type: ignore[misc]


def _read(stream: Callable[[], Iterable[T]], said: queue.Queue[Said[T]]) -> None:
    try:
        for item in stream():
            said.put(("item", item))
    except BaseException as error:
        said.put(("error", error))
    else:
        said.put(("end", None))


def _asked(ask: Callable[[], object], missed: int, misses: int) -> int:
    try:
        ask()
    except Exception:
        if missed + 1 >= misses:
            raise
        return missed + 1
    return 0
