"""A load on engines: streamed requests, some at a time, and how long the parts of each took."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from moorage.adapters.engines.engine_http import Question
from moorage.adapters.engines.engine_stream import NoAnswer, stream_text
from moorage.adapters.secrets import redact
from moorage.readiness.acceptance import Sample


class LoadClient:
    """Sends requests to one engine, until their deadline or `stop`.

    Args:
        concurrency: Requests that are under way at the same time.
        deadline: Of all requests, in seconds of `time.monotonic`.
    """

    def __init__(self, concurrency: int, deadline: float) -> None:
        self._concurrency, self._deadline = concurrency, deadline
        self._stopped = threading.Event()

    def run(self, questions: Sequence[Question]) -> list[Sample]:
        """Send requests for streams, each as soon as one before it has ended."""
        with ThreadPoolExecutor(self._concurrency, "moorage-load") as pool:
            return list(pool.map(self._timed, questions))

    def stop(self) -> None:
        """End what is under way with its next piece; begin no more."""
        self._stopped.set()

    def _timed(self, question: Question) -> Sample:
        begun = time.monotonic()
        left = self._deadline - begun
        if left <= 0 or self._stopped.is_set():
            return Sample(wrong="not sent before the deadline")
        usage: dict[str, Any] = {}
        times: list[float] = []
        try:
            for _ in stream_text(question, left, pause=left, usage=usage):
                times.append(time.monotonic())
                if self._stopped.is_set():
                    return Sample(wrong="stopped")
        except NoAnswer as error:
            return Sample(wrong=redact(str(error)))
        return _sample(begun, times, usage.get("completion_tokens"))


def _sample(begun: float, times: Sequence[float], counted: object) -> Sample:
    """A request by the times of its pieces, and its tokens as the engine counts them.

    Without such a count each piece is a token. Tokens without a text, such as the last one, are no
    piece; an answer that came in one piece tells no time per token.
    """
    tokens = counted if isinstance(counted, int) else len(times)
    if tokens < 1 or not times:
        return Sample(wrong="no text was generated")
    span = times[-1] - times[0]
    tpot = span / (tokens - 1) if span > 0 and tokens > 1 else None
    return Sample(ttft=times[0] - begun, tpot=tpot, tokens=tokens)
