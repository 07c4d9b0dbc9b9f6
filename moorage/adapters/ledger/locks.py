"""One flow at a time for a model name, whatever happens to the flow.

A lock has a lease that its holder renews. It is taken over when the lease ran out, or at once when
the holder was a process of this machine that is gone. Prefect's own concurrency limits cannot do
this: a killed holder keeps its slot, for ever if the server restarts.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Engine, Row, delete, insert, select, update

from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import LOCKS
from moorage.adapters.owner import Owner, is_gone, this_process
from moorage.failures import Cause, Failure

LEASE_SECONDS = 60.0
RENEW_SECONDS = 10.0
POLL_SECONDS = 0.2


class LockHeld(Failure):
    """Somebody else holds a lock."""

    def __init__(self, detail: str) -> None:
        super().__init__(Cause.DEPLOY_IN_PROGRESS, detail)

    def __reduce__(self) -> tuple[object, ...]:
        return LockHeld, (self.detail,)


class Locks:
    """The locks of model names."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock

    @contextmanager
    def holding(self, name: str, *, wait_seconds: float, note: str = "") -> Iterator[None]:
        """Hold a lock; its lease is renewed in the background.

        Args:
            name: What is locked.
            wait_seconds: How long to wait for another holder.
            note: Shown to those who wait, such as the flow run.

        Raises:
            LockHeld: When the other holder does not end in time.
        """
        token = uuid.uuid4().hex
        owner = this_process(note)
        give_up = time.monotonic() + wait_seconds
        while other := self.take(name, token, owner):
            if time.monotonic() >= give_up:
                holder = other.note or f"process {other.pid}"
                raise LockHeld(f"{name} is held by {holder}")
            time.sleep(POLL_SECONDS)
        ended = threading.Event()
        renewer = threading.Thread(target=self._renew, args=(name, token, ended), daemon=True)
        renewer.start()
        try:
            yield
        finally:
            ended.set()
            renewer.join()
            # What was done under the lock is done, whether or not the ledger answers now: a lease
            # that is not given back runs out.
            with suppress(Failure):
                self.drop(name, token)

    def take(self, name: str, token: str, owner: Owner) -> Owner | None:
        """Take a lock if it is free, and say who holds it otherwise."""
        with gate(self._engine) as connection:
            row = connection.execute(select(LOCKS).where(LOCKS.c.name == name)).first()
            if row is not None:
                if self._counts(row):
                    return Owner.model_validate(row.owner)
                connection.execute(delete(LOCKS).where(LOCKS.c.name == name))
            connection.execute(
                insert(LOCKS).values(
                    name=name,
                    token=token,
                    owner=owner.model_dump(mode="json"),
                    expires_at=self._clock() + LEASE_SECONDS,
                )
            )
            return None

    def is_held(self, name: str) -> bool:
        """Whether somebody who may be alive holds a lock."""
        with reading(self._engine) as connection:
            row = connection.execute(select(LOCKS).where(LOCKS.c.name == name)).first()
        return row is not None and self._counts(row)

    def drop(self, name: str, token: str) -> None:
        """Give a lock back. Nothing happens when somebody else took it over."""
        with gate(self._engine) as connection:
            connection.execute(delete(LOCKS).where(LOCKS.c.name == name, LOCKS.c.token == token))

    def _counts(self, row: Row[Any]) -> bool:
        return row.expires_at > self._clock() and not is_gone(Owner.model_validate(row.owner))

    def _renew(self, name: str, token: str, ended: threading.Event) -> None:
        while not ended.wait(RENEW_SECONDS):
            # A ledger that is away for a moment is asked again before the lease runs out.
            with suppress(Failure), gate(self._engine) as connection:
                connection.execute(
                    update(LOCKS)
                    .where(LOCKS.c.name == name, LOCKS.c.token == token)
                    .values(expires_at=self._clock() + LEASE_SECONDS)
                )
