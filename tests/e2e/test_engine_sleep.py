"""Engines that sleep without ending: the process stays, and most of its memory is free."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from moorage.inventory.claims import Resource
from tests.e2e.conftest import installed_engine
from tests.e2e.drill import KILLED
from tests.e2e.interrupted import ENGINE_SLEEP
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

FLEET = """\
hosts:
- name: local
  ports: {low}-{high}
  runtimes: [process]
  accelerators: [{{type: cuda, index: 0, memory: 80GiB}}]
"""


class Sleeper:
    """A model on one accelerator, whose vLLM sleeps by itself."""

    def __init__(self, place: Workplace, program: Path) -> None:
        self.place, self.name = place, place.named("tiny")
        self.fleet = place.folder / "gpu.yaml"
        self.fleet.write_text(FLEET.format(low=place.first_port, high=place.first_port + 39))
        self._program = program

    def deploy(self, behaviour: str = "ok", level: int = 1) -> None:
        engine = installed_engine(self.place, self._program, behaviour)
        spec = self.place.spec("tiny", engine=engine, sleep_level=level)
        self.place.run("deploy", spec, "--fleet", self.fleet)

    def sleep(self) -> str:
        return self.place.run("unload", self.name).stdout

    def wake(self) -> str:
        return self.place.run("load", self.name, "--fleet", self.fleet).stdout

    @property
    def state(self) -> str:
        return self.place.releases()[0].state

    @property
    def engines(self) -> set[int]:
        """Process numbers of its engines."""
        return {
            int(one.identity.partition("@")[0])
            for row in self.place.releases()
            for one in row.workloads
        }

    @property
    def claimed(self) -> Counter[Resource]:
        found = Counter[Resource]()
        for claim in self.place.claims():
            found[claim.resource] += claim.amount
        return found


@pytest.fixture
def sleeper(workplace: Workplace, lifecycle_program: Path) -> Sleeper:
    return Sleeper(workplace, lifecycle_program)


@pytest.mark.parametrize("level", [1, 2])
def test_an_engine_that_sleeps_keeps_its_process_and_little_memory(
    sleeper: Sleeper, level: int
) -> None:
    sleeper.deploy(level=level)
    before, engines = sleeper.claimed, sleeper.engines
    sleeper.sleep()
    assert sleeper.state == "asleep"
    assert sleeper.engines == engines
    assert 0 < sleeper.claimed[Resource.ACCELERATOR] < before[Resource.ACCELERATOR]
    assert sleeper.claimed[Resource.RAM] == before[Resource.RAM]
    assert bool(before[Resource.RAM]) == (level == 1)
    sleeper.wake()
    assert (sleeper.state, sleeper.engines, sleeper.claimed) == ("running", engines, before)
    assert sleeper.place.run("chat", sleeper.name, "Hello").stdout.strip() == "ok"


def test_an_engine_that_refuses_to_sleep_is_stopped(sleeper: Sleeper) -> None:
    sleeper.deploy("awake")
    sleeper.sleep()
    assert sleeper.state == "asleep"
    assert not sleeper.place.running()
    assert set(sleeper.claimed) == {Resource.PORT}
    sleeper.wake()
    assert sleeper.state == "running"


@pytest.mark.parametrize("reconciled", [False, True])
def test_an_engine_that_dies_in_its_sleep_is_started_when_the_model_wakes(
    sleeper: Sleeper, reconciled: bool
) -> None:
    sleeper.deploy()
    before, engines = sleeper.claimed, sleeper.engines
    sleeper.sleep()
    for process in sleeper.place.processes():
        os.kill(process.pid, signal.SIGKILL)
    if reconciled:
        sleeper.place.run("reconcile", "--fleet", sleeper.fleet)
        assert sleeper.state == "asleep"
        assert set(sleeper.claimed) == {Resource.PORT}
    sleeper.wake()
    assert (sleeper.state, sleeper.claimed) == ("running", before)
    assert not sleeper.engines & engines


def test_reconciling_leaves_a_sleeping_engine_alone(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper.deploy()
    sleeper.sleep()
    engines = sleeper.engines
    monkeypatch.setitem(sleeper.place.environment, "MOORAGE_ORPHAN_SECONDS", "0")
    assert "nothing to do" in sleeper.place.run("reconcile", "--fleet", sleeper.fleet).stdout
    assert (sleeper.state, sleeper.engines) == ("asleep", engines)
    assert sleeper.place.running()


@pytest.mark.parametrize(
    ("point", "command"), list(zip(ENGINE_SLEEP, ("unload", "load"), strict=True))
)
def test_a_killed_flow_leaves_a_model_that_sleeps_and_wakes(
    sleeper: Sleeper, point: str, command: str
) -> None:
    sleeper.deploy()
    before = sleeper.claimed
    if command == "load":
        sleeper.sleep()
    fleet = ("--fleet", sleeper.fleet) if command == "load" else ()
    killed = sleeper.place.run(command, sleeper.name, *fleet, code=None, point=point)
    assert killed.returncode == KILLED, killed.stderr
    sleeper.place.run("reconcile", "--fleet", sleeper.fleet)
    assert sleeper.state == "asleep"
    assert not sleeper.place.running()
    assert set(sleeper.claimed) == {Resource.PORT}
    sleeper.wake()
    assert (sleeper.state, sleeper.claimed) == ("running", before)


@pytest.mark.parametrize("action", ["retire", "deploy"])
def test_a_sleeping_engine_ends_with_its_release(sleeper: Sleeper, action: str) -> None:
    sleeper.deploy()
    sleeper.sleep()
    if action == "retire":
        sleeper.place.run("retire", sleeper.name)
        assert sleeper.place.is_clean()
    else:
        sleeper.deploy(level=2)
        assert [row.state for row in sleeper.place.releases()] == ["running", "superseded"]
        assert len(sleeper.place.running()) == 1
