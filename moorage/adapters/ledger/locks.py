"""Locks of model names and accelerators, for one flow at a time.

The holder of a lock renews its lease. Others take the lock over when the lease has run out, or at
once if the holder was a process of this machine and has exited. Prefect's concurrency limits are
unsuitable: a killed holder keeps its slot, and keeps it forever if the server restarts.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    cast,
    delete,
    extract,
    func,
    literal,
    select,
    update,
)

from moorage.adapters.hosts.supervisor import is_alive, process_state
from moorage.adapters.ledger.database import LedgerPart, gate, reading
from moorage.adapters.ledger.tables import LOCKS, replace_rows
from moorage.common.failures import Cause, Failure
from moorage.common.values import Value

LEASE_SECONDS = 60.0
RENEW_SECONDS = 10.0
POLL_SECONDS = 0.2

ASKS = "asks:"
"""Begins the name of the lock that a flow run holds while it waits for approval; its id follows."""

ABANDONED_SECONDS = 600.0
"""How long ago a lease has run out whose holder, on another machine, counts as killed."""


class Owner(Value):
    """A process, distinct from any later process with the same pid.

    Attributes:
        machine: Boot id of the machine and namespace of pids; empty = unknown.
        started_at: Start of the process in clock ticks since the boot. Unlike a time of day it
            stays the same when the clock is set.
        note: Description of the process, for people.
    """

    machine: str
    pid: int
    started_at: int
    note: str = ""

    @classmethod
    def of(cls, pid: int, note: str = "") -> Owner:
        """A process of this machine."""
        return cls(machine=_machine(), pid=pid, started_at=process_state(pid)[1], note=note)

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine. Others are unknown."""
        return bool(self.machine) and self.machine == _machine()

    @property
    def is_running(self) -> bool:
        """Whether it certainly runs; False when this machine cannot know."""
        return self.is_here and is_alive(self.pid, self.started_at)

    @property
    def has_ended(self) -> bool:
        """Whether it has certainly exited; False when this machine cannot know."""
        return self.is_here and not is_alive(self.pid, self.started_at)


def this_process(note: str = "") -> Owner:
    """The calling process."""
    return Owner.of(os.getpid(), note)


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


class LockHeld(Failure):
    """Another process holds a lock."""

    def __init__(self, detail: str) -> None:
        super().__init__(Cause.DEPLOY_IN_PROGRESS, detail)

    def __reduce__(self) -> tuple[object, ...]:
        return LockHeld, (self.detail,)


class Locks(LedgerPart):
    """The locks of a ledger."""

    @contextmanager
    def holding(
        self,
        name: str,
        *,
        wait_seconds: float,
        note: str = "",
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> Iterator[None]:
        """Hold a lock; its lease is renewed in the background.

        Args:
            wait_seconds: How long to wait for another holder.
            note: Shown to processes that wait for the lock, such as the name of the flow run.
            on_wait: Called with a description of the holder, again for each new holder.

        Raises:
            LockHeld: When another holder keeps the lock for longer.
        """
        token = uuid.uuid4().hex
        owner = this_process(note)
        give_up, waited_for = time.monotonic() + wait_seconds, ""
        while other := self.take_all([name], token, owner).get(name):
            held = f"{name} is held by {other.note or f'process {other.pid}'}"
            if time.monotonic() >= give_up:
                raise LockHeld(held)
            if held != waited_for:
                waited_for = held
                on_wait(held)
            time.sleep(POLL_SECONDS)
        with self.renewal(token):
            yield

    def take_all(
        self, names: Sequence[str], token: str, owner: Owner, lease_seconds: float = LEASE_SECONDS
    ) -> dict[str, Owner]:
        """Take all of these locks in one step; else take none and return the holders by lock."""
        with gate(self._engine) as connection:
            if held := self._owners(connection, LOCKS.c.name.in_(names), LOCKS.c.token != token):
                return held
            lock = {"token": token, "owner": owner.model_dump(mode="json")}
            expires_at = connection.execute(select(self._now + lease_seconds)).scalar_one()
            rows = [{"name": name, **lock, "expires_at": expires_at} for name in names]
            replace_rows(connection, LOCKS, LOCKS.c.name.in_(names), rows)
        return {}

    @contextmanager
    def renewal(self, token: str, lease_seconds: float = LEASE_SECONDS) -> Iterator[None]:
        """Renew the leases of a token in the background, and free its locks at the end."""
        ended = threading.Event()
        parameters = (token, lease_seconds, ended)
        renewer = threading.Thread(target=self._renew, args=parameters, daemon=True)
        renewer.start()
        try:
            yield
        finally:
            ended.set()
            renewer.join()
            # The work under the lock is done. If the ledger does not answer now, the lease runs
            # out by itself.
            with suppress(Failure):
                self.drop(token)

    def holders(self, names: Sequence[str]) -> dict[str, Owner]:
        """The holder of each of these locks that is held."""
        with reading(self._engine) as connection:
            return self._owners(connection, LOCKS.c.name.in_(names))

    def is_held(self, name: str) -> bool:
        """Whether a lock is held."""
        return name in self.holders([name])

    def abandoned(self, prefix: str) -> list[str]:
        """The locks with this prefix that nobody freed, since their holders were killed."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(LOCKS).where(LOCKS.c.name.startswith(prefix))).all()
            late = connection.execute(select(self._now - ABANDONED_SECONDS)).scalar_one()
        owners = ((row, Owner.from_record(row.owner)) for row in rows)
        # After a suspend of this machine the leases of its living processes have run out, too.
        return [
            row.name
            for row, owner in owners
            if owner.has_ended or (not owner.is_running and row.expires_at < late)
        ]

    def drop_expired(self, prefix: str, seconds: float) -> None:
        """Free the locks with this prefix whose leases ran out more than `seconds` ago."""
        with gate(self._engine) as connection:
            late = LOCKS.c.expires_at < self._now - seconds
            connection.execute(delete(LOCKS).where(LOCKS.c.name.startswith(prefix), late))

    def drop(self, token: str) -> None:
        """Free the locks that a token still holds."""
        with gate(self._engine) as connection:
            connection.execute(delete(LOCKS).where(LOCKS.c.token == token))

    @property
    def _now(self) -> ColumnElement[float]:
        """Seconds since 1970, by the clock of a server, since those of machines differ."""
        if self._engine.dialect.name == "postgresql":
            return cast(extract("epoch", func.clock_timestamp()), Float)
        return literal(time.time())

    def _owners(self, connection: Connection, *where: ColumnElement[bool]) -> dict[str, Owner]:
        rows = connection.execute(
            select(LOCKS).where(*where, LOCKS.c.expires_at > self._now).order_by(LOCKS.c.name)
        )
        owners = {row.name: Owner.from_record(row.owner) for row in rows}
        return {name: owner for name, owner in owners.items() if not owner.has_ended}

    def _renew(self, token: str, lease_seconds: float, ended: threading.Event) -> None:
        while not ended.wait(RENEW_SECONDS):
            # If the ledger does not answer, the next renewal still comes before the lease runs out.
            with suppress(Failure), gate(self._engine) as connection:
                later = {"expires_at": self._now + lease_seconds}
                connection.execute(update(LOCKS).where(LOCKS.c.token == token).values(later))
