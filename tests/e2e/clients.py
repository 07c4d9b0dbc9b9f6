"""Clients that ask a model non-stop, and look its endpoint up before each request."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

import httpx

from tests.e2e.workplace import Workplace
from tests.one_authority import NO_TLS

PAUSE_SECONDS = 0.1
ANSWER_SECONDS = 30


@dataclass
class Clients:
    """Several clients of one model.

    Attributes:
        place: Whose ledger they look the endpoint up in.
        name: Of the model.
        count: How many ask at the same time.
        dither_seconds: How long each waits between the look-up and its request.
        answered: Requests that were answered, by release.
        failed: What went wrong with the others.
        gaps: Seconds in a row in which the ledger named nobody, seen by the first client.
    """

    place: Workplace
    name: str
    count: int = 3
    dither_seconds: float = 0.0
    answered: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    def __enter__(self) -> Clients:
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._ask_on, args=(number == 0,))
            for number in range(self.count)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _ask_on(self, notes_gaps: bool) -> None:
        last_served = time.monotonic()
        unserved = False
        while not self._end.wait(PAUSE_SECONDS):
            routes = self.place.ledger.routes.routes(self.place.named(self.name))
            now = time.monotonic()
            if not routes:
                unserved = True
                continue
            if unserved and notes_gaps:
                self.gaps.append(now - last_served)
            unserved, last_served = False, now
            time.sleep(self.dither_seconds)
            self._ask(routes[0].release, random.choice(routes[0].endpoints))

    def _ask(self, release: str, endpoint: str) -> None:
        body = {"model": self.place.named(self.name), "prompt": "Hello", "max_tokens": 1}
        wrong = ""
        try:
            response = httpx.post(
                f"{endpoint}/v1/completions",
                json=body,
                timeout=ANSWER_SECONDS,
                trust_env=False,
                verify=NO_TLS,
            )
            if response.status_code != 200:
                wrong = f"{release}: HTTP {response.status_code}"
        except httpx.HTTPError as error:
            wrong = f"{release} at {endpoint}: {error!r}"
        with self._lock:
            if wrong:
                self.failed.append(wrong)
            else:
                self.answered[release] = self.answered.get(release, 0) + 1
