from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from sqlalchemy import ColumnElement, Connection, Engine, literal

from moorage.adapters.hosts.supervisor import is_alive
from moorage.adapters.ledger import locks as module
from moorage.adapters.ledger.database import gate, open_database
from moorage.adapters.ledger.locks import (
    ABANDONED_SECONDS,
    LEASE_SECONDS,
    Locks,
    Owner,
    this_process,
)
from moorage.common.failures import Cause, Failure
from tests.waiting import until

ELSEWHERE = Owner(machine="another machine", pid=1, started_at=0.0, note="flow run 7")

HOLD = """\
import sys, time
from moorage.adapters.ledger import Ledger
with Ledger(sys.argv[1]).locks.holding("tiny", wait_seconds=0, note="the other process"):
    print("held", flush=True)
    time.sleep(60)
"""


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_database(url)
    yield engine
    engine.dispose()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def locks(engine: Engine, clock: Clock) -> Locks:
    class Clocked(Locks):
        @property
        def _now(self) -> ColumnElement[float]:
            return literal(clock.now)

    return Clocked(engine)


@pytest.fixture
def holder(url: str, engine: Engine) -> Iterator[subprocess.Popen[str]]:  # noqa: ARG001
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def is_free(locks: Locks, name: str = "tiny") -> bool:
    """Whether somebody else could take the lock; it is given back."""
    taken = locks.take_all([name], "a look", this_process()) == {}
    locks.drop("a look")
    return taken


def test_a_lock_is_held_inside_the_block_and_free_after_it(locks: Locks) -> None:
    with locks.holding("tiny", wait_seconds=0):
        assert not is_free(locks)
        assert is_free(locks, "other")
    assert is_free(locks)


def test_a_lock_is_free_after_an_error_too(locks: Locks) -> None:
    with pytest.raises(ValueError, match="oops"), locks.holding("tiny", wait_seconds=0):
        raise ValueError("oops")
    assert is_free(locks)


def test_who_holds_a_lock_is_named(locks: Locks) -> None:
    locks.take_all(["tiny"], "token", ELSEWHERE)
    with (
        pytest.raises(Failure, match="tiny is held by flow run 7") as caught,
        locks.holding("tiny", wait_seconds=0),
    ):
        pass
    assert caught.value.cause is Cause.DEPLOY_IN_PROGRESS


@pytest.mark.parametrize(("seconds", "free"), [(0, False), (-1, False), (1, True)])
def test_a_lock_from_another_machine_is_free_once_its_lease_has_run_out(
    locks: Locks, clock: Clock, seconds: int, free: bool
) -> None:
    locks.take_all(["tiny"], "token", ELSEWHERE)
    clock.now += LEASE_SECONDS - 0.5 + seconds
    assert is_free(locks) is free


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_machine_whose_clock_is_ahead_takes_no_lock_from_another(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Locks(engine).take_all(["tiny"], "token", ELSEWHERE) == {}
    right = time.time()
    monkeypatch.setattr(time, "time", lambda: right + 3600)
    assert Locks(engine).take_all(["tiny"], "another", this_process()) == {"tiny": ELSEWHERE}
    assert Locks(engine).is_held("tiny")


def test_several_locks_are_taken_together_or_not_at_all(locks: Locks) -> None:
    assert locks.take_all(["a", "b"], "first", ELSEWHERE) == {}
    assert locks.take_all(["b", "c"], "second", ELSEWHERE) == {"b": ELSEWHERE}
    assert is_free(locks, "c")
    locks.drop("first")
    assert locks.take_all(["b", "c"], "second", ELSEWHERE) == {}
    assert locks.holders(["a", "b", "c"]) == {"b": ELSEWHERE, "c": ELSEWHERE}


def test_taking_again_what_one_holds_renews_it(locks: Locks, clock: Clock) -> None:
    locks.take_all(["a", "b"], "token", ELSEWHERE)
    clock.now += LEASE_SECONDS - 1
    assert locks.take_all(["a", "b"], "token", ELSEWHERE) == {}
    clock.now += LEASE_SECONDS - 1
    assert not is_free(locks, "a")


@pytest.mark.parametrize(("seconds", "free"), [(99, False), (101, True)])
def test_a_longer_lease_runs_out_later(
    locks: Locks, clock: Clock, seconds: int, free: bool
) -> None:
    locks.take_all(["a", "b"], "token", ELSEWHERE, lease_seconds=100)
    clock.now += seconds
    assert is_free(locks, "a") is free
    assert bool(locks.holders(["b"])) is not free


def test_all_that_was_taken_together_is_renewed_and_given_back_together(
    locks: Locks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.01)
    with locks.renewal("token"):
        locks.take_all(["a", "b"], "token", ELSEWHERE)
        clock.now += LEASE_SECONDS * 2
        until(lambda: locks.holders(["a", "b"]).keys() == {"a", "b"})
    assert locks.holders(["a", "b"]) == {}


def test_who_was_taken_over_gives_nothing_back(locks: Locks, clock: Clock) -> None:
    locks.take_all(["tiny"], "first", ELSEWHERE)
    clock.now += LEASE_SECONDS + 1
    assert locks.take_all(["tiny"], "second", ELSEWHERE) == {}
    locks.drop("first")
    assert not is_free(locks)


def test_the_lease_is_renewed_while_the_lock_is_held(
    locks: Locks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.01)
    with locks.holding("tiny", wait_seconds=0):
        clock.now += LEASE_SECONDS * 2
        until(lambda: locks.is_held("tiny"))
        assert not is_free(locks)


def test_a_ledger_that_is_away_for_a_moment_does_not_end_the_renewal(
    locks: Locks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stumbled = threading.Event()

    @contextmanager
    def stumbling(engine: Engine) -> Iterator[Connection]:
        if threading.current_thread() is not threading.main_thread() and not stumbled.is_set():
            stumbled.set()
            raise Failure(Cause.LEDGER_UNAVAILABLE, "away for a moment")
        with gate(engine) as connection:
            yield connection

    monkeypatch.setattr(module, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr(module, "gate", stumbling)
    with locks.holding("tiny", wait_seconds=0):
        assert stumbled.wait(60)
        clock.now += LEASE_SECONDS * 2
        until(lambda: locks.is_held("tiny"))
        assert not is_free(locks)


def test_the_lock_of_a_living_process_is_not_taken(
    holder: subprocess.Popen[str], engine: Engine
) -> None:
    assert holder.poll() is None
    with (
        pytest.raises(Failure, match="held by the other process"),
        Locks(engine).holding("tiny", wait_seconds=0),
    ):
        pass


def test_the_lock_of_a_killed_process_is_taken_over_at_once(
    holder: subprocess.Popen[str], engine: Engine
) -> None:
    holder.kill()
    until(lambda: is_free(Locks(engine)))  # it is not even reaped yet
    with Locks(engine).holding("tiny", wait_seconds=0):
        assert not is_free(Locks(engine))


def test_whoever_waits_gets_the_lock_when_it_is_given_back(
    locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    locks.take_all(["tiny"], "token", ELSEWHERE)
    threading.Timer(0.05, locks.drop, ("token",)).start()
    messages: list[str] = []
    with locks.holding("tiny", wait_seconds=5, on_wait=messages.append):
        assert not is_free(locks)
    assert messages == ["tiny is held by flow run 7"]


CHILD = """\
import time
from moorage.adapters.ledger.locks import this_process
print(this_process().model_dump_json(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def described(child: subprocess.Popen[str]) -> Owner:
    """The child, as it describes itself."""
    assert child.stdout
    return Owner.model_validate_json(child.stdout.readline())


def test_this_process_lives() -> None:
    own = this_process("flow run 7")
    assert (own.pid, own.note) == (os.getpid(), "flow run 7")
    assert own.machine
    assert is_alive(own.pid, own.started_at)
    assert not own.has_ended


def test_a_killed_process_is_gone_even_before_it_is_reaped(child: subprocess.Popen[str]) -> None:
    owner = described(child)
    assert not owner.has_ended
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but still in the table
    assert owner.has_ended
    child.wait()
    assert owner.has_ended


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    own = this_process()
    earlier = own.model_copy(update={"started_at": own.started_at - 2})
    assert earlier.has_ended


def test_a_clock_that_is_set_ends_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    own, boot = this_process(), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 3600)
    assert is_alive(own.pid, own.started_at)
    assert not own.has_ended


@pytest.mark.parametrize("machine", ["", "another boot/pid:[1]"])
def test_of_another_machine_nothing_can_be_told(machine: str) -> None:
    assert not Owner(machine=machine, pid=2**22 + 1, started_at=0.0).has_ended


def test_an_owner_survives_its_json() -> None:
    own = this_process()
    assert Owner.model_validate_json(own.model_dump_json()) == own


@pytest.mark.parametrize(
    ("owner", "seconds", "abandoned"),
    [
        (ELSEWHERE, LEASE_SECONDS + 1, []),
        (ELSEWHERE, LEASE_SECONDS + ABANDONED_SECONDS + 1, ["asks:1"]),
        (this_process(), 1, []),
        (this_process(), LEASE_SECONDS + ABANDONED_SECONDS + 1, []),
        (this_process().model_copy(update={"started_at": 0}), 1, ["asks:1"]),
    ],
    ids=["elsewhere", "elsewhere for long", "alive", "alive after a suspend", "ended"],
)
def test_what_nobody_has_freed_is_abandoned_once_its_holder_is_gone(
    locks: Locks, clock: Clock, owner: Owner, seconds: float, abandoned: list[str]
) -> None:
    for name in ("asks:1", "tiny"):
        locks.take_all([name], "token", owner)
    clock.now += seconds
    assert locks.abandoned("asks:") == abandoned
    locks.drop("token")
    assert locks.abandoned("asks:") == []
