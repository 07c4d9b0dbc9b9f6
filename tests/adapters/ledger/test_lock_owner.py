from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from moorage.adapters.ledger.lock_owner import Owner, has_ended, is_alive, this_process

CHILD = """\
import time
from moorage.adapters.ledger.lock_owner import this_process
print(this_process().model_dump_json(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def owner_of(child: subprocess.Popen[str]) -> Owner:
    """The child, as it describes itself."""
    assert child.stdout
    return Owner.model_validate_json(child.stdout.readline())


def test_this_process_lives() -> None:
    own = this_process("flow run 7")
    assert (own.pid, own.note) == (os.getpid(), "flow run 7")
    assert own.machine
    assert is_alive(own.pid, own.started_at)
    assert not has_ended(own)


def test_a_killed_process_is_gone_even_before_it_is_reaped(child: subprocess.Popen[str]) -> None:
    owner = owner_of(child)
    assert not has_ended(owner)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but still in the table
    assert has_ended(owner)
    child.wait()
    assert has_ended(owner)


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    own = this_process()
    earlier = own.model_copy(update={"started_at": own.started_at - 2})
    assert has_ended(earlier)


def test_a_clock_that_is_set_ends_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    own, boot = this_process(), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 3600)
    assert is_alive(own.pid, own.started_at)
    assert not has_ended(own)


@pytest.mark.parametrize("machine", ["", "another boot/pid:[1]"])
def test_of_another_machine_nothing_can_be_told(machine: str) -> None:
    assert not has_ended(Owner(machine=machine, pid=2**22 + 1, started_at=0.0))


def test_an_owner_survives_its_json() -> None:
    own = this_process()
    assert Owner.model_validate_json(own.model_dump_json()) == own
