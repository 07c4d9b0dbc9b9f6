"""Stopping what serves: its requests may end first, and nobody waits for what is not there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import Clients
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.fork_server import ForkedProcess
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server]

PATIENT = {"drain_seconds": 600, "grace_seconds": 5}


class Busy:
    """A deployed engine that has a request in flight until `done` is called."""

    def __init__(self, workplace: Workplace, program: Path, **fields: Any) -> None:
        self._request = workplace.folder / "request"
        self._request.touch()
        self.engine = process_engine(program, "busy", BUSY=str(self._request))
        self.spec = workplace.spec(engine=self.engine, stopping=PATIENT, **fields)
        self.release = workplace.json("deploy", self.spec)["release"]
        (workload,) = self.release["workloads"]
        self._log = workplace.home / "run" / workload["name"] / "log"

    def is_waited_for(self) -> bool:
        return "/metrics" in self._log.read_text()

    def done(self) -> None:
        self._request.unlink()


@pytest.fixture
def busy(workplace: Workplace, lifecycle_program: Path) -> Busy:
    return Busy(workplace, lifecycle_program)


def causes(workplace: Workplace) -> list[tuple[str, str]]:
    return [(row.state, row.cause) for row in workplace.releases()]


def states(workplace: Workplace) -> list[str]:
    """Newest first."""
    return [row.state for row in workplace.releases()]


def interrupted(command: ForkedProcess) -> None:
    """End a command with Ctrl-C; that takes no longer than its next look at the engine."""
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=PATIENCE_SECONDS)
    assert command.returncode == 130


def test_a_retired_model_stops_when_its_last_request_has_ended(
    workplace: Workplace, busy: Busy
) -> None:
    retiring = workplace.start("retire", workplace.named("tiny"))
    workplace.wait_until(busy.is_waited_for)
    assert states(workplace) == ["stopping"]
    assert workplace.running()

    busy.done()
    output = " ".join(retiring.communicate(timeout=PATIENCE_SECONDS)[1].split())
    assert "its last request ended after" in output
    ((state, cause),) = causes(workplace)
    assert state == "stopped"
    assert cause.startswith("retired; its last request ended after")
    assert workplace.is_clean()


def test_a_request_that_takes_too_long_is_told(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program, "busy", BUSY=str(workplace.folder))
    workplace.run("deploy", workplace.spec(engine=engine, stopping={"drain_seconds": 1}))
    workplace.run("retire", workplace.named("tiny"))
    ((state, cause),) = causes(workplace)
    assert state == "stopped"
    assert cause.startswith("retired; 1 request still in flight after 1.")
    assert workplace.is_clean()


def test_a_retire_refuses_nobody_who_has_just_looked_the_endpoint_up(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine, lingers = process_engine(lifecycle_program), {"linger_seconds": 4}
    workplace.run("deploy", workplace.spec(engine=engine, replicas=2, replace=lingers))
    with Clients(workplace, "tiny", count=8, dither_seconds=1) as clients:
        workplace.wait_until(lambda: bool(clients.answered))
        workplace.run("retire", workplace.named("tiny"))
    assert clients.failed == []
    assert workplace.is_clean()


def test_an_engine_that_is_dead_is_not_waited_for(workplace: Workplace, busy: Busy) -> None:
    for process in workplace.processes():
        process.kill()
    began = time.monotonic()
    workplace.run("retire", workplace.named("tiny"))
    assert time.monotonic() - began < 30
    assert causes(workplace) == [("stopped", "retired; no request was in flight")]
    assert busy.release["id"]


def test_a_retire_that_is_interrupted_while_it_waits_changes_nothing(
    workplace: Workplace, busy: Busy
) -> None:
    before = workplace.processes()
    retiring = workplace.start("retire", workplace.named("tiny"))
    workplace.wait_until(busy.is_waited_for)
    interrupted(retiring)
    assert causes(workplace) == [("running", "its stop was cancelled")]
    assert workplace.processes() == before
    assert "already serves" in workplace.run("deploy", busy.spec).stdout


def test_a_successor_that_is_interrupted_while_it_waits_for_room_changes_nothing(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    busy = Busy(workplace, lifecycle_program, port=workplace.first_port)
    before = workplace.processes()
    engine, port = {**busy.engine, "args": ["--seed 7"]}, workplace.first_port
    spec = workplace.spec(engine=engine, stopping=PATIENT, port=port, replicas=1)
    deploying = workplace.start("deploy", spec)
    workplace.wait_until(busy.is_waited_for)
    interrupted(deploying)
    assert states(workplace) == ["error", "running"]
    assert workplace.processes() == before


def test_a_successor_serves_while_the_requests_of_the_old_one_end(
    workplace: Workplace, busy: Busy, lifecycle_program: Path
) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program))
    deploying = workplace.start("deploy", spec)
    workplace.wait_until(busy.is_waited_for)
    assert states(workplace) == ["running", "stopping"]
    assert len(workplace.running()) == 2

    busy.done()
    deploying.communicate(timeout=PATIENCE_SECONDS)
    assert deploying.returncode == os.EX_OK
    (_, _), (state, cause) = causes(workplace)
    assert state == "superseded"
    assert "v2; its last request ended after" in cause
    assert len(workplace.running()) == 1


def test_an_interrupt_ends_the_waiting_for_the_old_release_but_leaves_it_not_half_ended(
    workplace: Workplace, busy: Busy, lifecycle_program: Path
) -> None:
    deploying = workplace.start("deploy", workplace.spec(engine=process_engine(lifecycle_program)))
    workplace.wait_until(busy.is_waited_for)
    interrupted(deploying)
    assert states(workplace) == ["running", "superseded"]
    assert workplace.running() == {f"moorage-{workplace.named('tiny')}.v2-r0-leader"}
    assert busy.release["id"] == workplace.releases()[1].id
