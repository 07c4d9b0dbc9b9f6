"""Several commands of moorage at a time, and what became of each."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker

from moorage.engines.labels import LABEL_LEDGER, LABEL_MODEL
from tests.e2e.chaos import Kind, Operation
from tests.e2e.workplace import Workplace

HUNG_SECONDS = 240.0
"""A command that runs for so long hangs."""

COMMANDS = {Kind.RETIRE: "retire", Kind.ROLLBACK: "rollback"}


@dataclass(frozen=True, slots=True)
class Done:
    """What became of an operation.

    Attributes:
        operation: The operation.
        outcome: In a word: the cause of a failure, or how it succeeded.
        output: What it printed where that is not an answer of moorage.
    """

    operation: Operation
    outcome: str
    output: str = ""


class Crew:
    """Works off operations, so many at a time, in their order.

    Args:
        place: Where.
        image: Of the engines.
        operations: What is to be done.
        hands: How many work.
    """

    def __init__(
        self, place: Workplace, image: str, operations: Iterable[Operation], hands: int
    ) -> None:
        self.done: list[Done] = []
        self._place, self._image, self._docker = place, image, docker.from_env()
        self._open, self._resting = deque(operations), frozenset[str]()
        self._at_work: Counter[str] = Counter()
        self._turn = threading.Condition()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(hands)]

    def __enter__(self) -> Crew:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._open.clear()
            self._resting = frozenset()
            self._turn.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def is_busy(self) -> bool:
        """Whether anything is left to do, or being done."""
        return bool(self._open) or any(self._at_work.values())

    def wait_for(self, count: int, seconds: float) -> bool:
        """Wait until so many operations have ended, or all; whether they have in time."""
        with self._turn:
            return self._turn.wait_for(lambda: len(self.done) >= count or not self.is_busy, seconds)

    @contextmanager
    def resting(self, models: Iterable[str]) -> Iterator[None]:
        """Work on other models meanwhile; it begins once nothing is in flight for these."""
        with self._turn:
            self._resting = frozenset(models)
            self._turn.wait_for(lambda: not any(self._at_work[one] for one in self._resting))
        try:
            yield
        finally:
            with self._turn:
                self._resting = frozenset()
                self._turn.notify_all()

    def _work(self) -> None:
        while operation := self._next():
            try:
                done = self._do(operation)
            except Exception as error:
                done = Done(operation, "the test itself went wrong", repr(error))
            with self._turn:
                self.done.append(done)
                self._at_work[operation.model] -= 1
                self._turn.notify_all()

    def _next(self) -> Operation | None:
        with self._turn:
            self._turn.wait_for(lambda: not self._open or self._first() is not None)
            operation = self._first()
            if operation is not None:
                self._open.remove(operation)
                self._at_work[operation.model] += 1
            return operation

    def _first(self) -> Operation | None:
        return next((one for one in self._open if one.model not in self._resting), None)

    def _do(self, operation: Operation) -> Done:
        if operation.kind is Kind.ACCIDENT:
            return Done(operation, self._kill_one(operation))
        done = self._place.run(
            *self._words(operation),
            code=None,
            point=operation.point,
            signals={signal.SIGKILL: HUNG_SECONDS, **operation.signals},
        )
        if done.returncode < 0:  # also by a SIGTERM that came before anybody could care for it
            return Done(operation, "killed" if operation.is_hurt else "hung", done.stderr[-2000:])
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            output = f"exit {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
            return Done(operation, "crashed", output)
        error = answer.get("error")
        return Done(
            operation,
            error["cause"] if error else answer.get("outcome", "completed"),
            str(error or ""),
        )

    def _words(self, operation: Operation) -> list[str]:
        fleet = ["--fleet", str(self._place.folder / "fleet.yaml"), "--json"]
        if operation.kind is Kind.RETIRE:
            return ["retire", self._place.named(operation.model), "--json"]
        if operation.kind is Kind.ROLLBACK:
            return ["rollback", self._place.named(operation.model), *fleet]
        fields = operation.spec(self._image, self._place.first_port)
        file = f"operation-{operation.number}"
        return ["deploy", str(self._place.spec(operation.model, file=file, **fields)), *fleet]

    def _kill_one(self, operation: Operation) -> str:
        """Kill a container of the model, or remove it, behind the back of moorage."""
        labels = {
            LABEL_LEDGER: self._place.ledger.identity,
            LABEL_MODEL: self._place.named(operation.model),
        }
        wanted = [f"{key}={value}" for key, value in labels.items()]
        found = self._docker.api.containers(filters={"label": wanted})
        if not found:
            return "nothing ran"
        victim = found[int(operation.luck * len(found))]["Id"]
        try:
            if operation.luck < 0.5:
                self._docker.api.kill(victim)
            else:
                self._docker.api.remove_container(victim, force=True)
        except docker.errors.APIError:
            return "it ended before"
        return "done"
