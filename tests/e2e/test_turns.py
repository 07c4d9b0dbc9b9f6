"""Engines that share an accelerator never start at the same time."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server]

LOAD_SECONDS = 3

FLEET = """\
hosts:
- name: gpu-1
  ports: {low}-{high}
  runtimes: [process]
  accelerators: [{{type: cuda, index: 0, memory: 80GiB}}]
"""

LOADS = """#!/bin/sh
# Whoever starts while another one has not opened its port yet writes it down. The kernel frees the
# lock of whoever is killed.
exec 9> {folder}/starting
flock --nonblock 9 || echo "$1" >> {folder}/spoiled
echo "$1" >> {folder}/started
sleep {seconds}
shift
exec "$@" 9>&-
"""


class Device:
    """One accelerator that notes engines which start on it at the same time."""

    def __init__(self, workplace: Workplace, program: Path) -> None:
        self.folder, self._workplace, self._program = workplace.folder, workplace, program
        low = workplace.first_port
        self.fleet = self.folder / "gpu.yaml"
        self.fleet.write_text(FLEET.format(low=low, high=low + 39))
        self._script = self.folder / "engine.sh"
        self._script.write_text(LOADS.format(folder=self.folder, seconds=LOAD_SECONDS))
        self._script.chmod(0o755)

    def spec(self, name: str, behaviour: str = "ok", **fields: Any) -> Path:
        engine = process_engine(self._program, behaviour)
        engine["command"] = [str(self._script), name, *engine["command"]]
        return self._workplace.spec(name, engine=engine, **fields)

    @property
    def started(self) -> list[str]:
        path = self.folder / "started"
        return path.read_text().split() if path.exists() else []

    @property
    def spoiled(self) -> bool:
        return (self.folder / "spoiled").exists()


@pytest.fixture
def device(workplace: Workplace, lifecycle_program: Path) -> Device:
    return Device(workplace, lifecycle_program)


def test_two_models_start_one_after_the_other(workplace: Workplace, device: Device) -> None:
    runs = [workplace.start("deploy", device.spec(name), "--fleet", device.fleet) for name in "abc"]
    answer = ""
    for run in runs:
        output, errors = run.communicate(timeout=PATIENCE_SECONDS)
        assert run.returncode == 0, errors
        answer += output + errors
    assert sorted(device.started) == ["a", "b", "c"]
    assert not device.spoiled
    assert "is starting on gpu-1 cuda:0" in answer


def test_replicas_on_one_accelerator_start_one_after_the_other(
    workplace: Workplace, device: Device
) -> None:
    spec = device.spec("twins", replicas=2)
    shown = workplace.json("deploy", spec, "--fleet", device.fleet)["release"]
    assert [seat["accelerators"] for seat in shown["placement"]["seats"]] == [[0], [0]]
    assert len(shown["readiness"]) == len(shown["workloads"]) == 2
    assert device.started == ["twins", "twins"]
    assert not device.spoiled


def test_a_replica_that_dies_before_the_last_one_is_ready_fails_the_release(
    workplace: Workplace, device: Device
) -> None:
    spec = device.spec("twins", f"dies-later:{LOAD_SECONDS}", replicas=2)
    error = workplace.json("deploy", spec, "--fleet", device.fleet, code=6)["error"]
    assert error["cause"] == "engine-exited"
    assert workplace.is_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_waits_starts_once_what_was_begun_before_is_stopped(
    workplace: Workplace, device: Device, number: signal.Signals
) -> None:
    first = workplace.start("deploy", device.spec("first", "deaf"), "--fleet", device.fleet)
    workplace.wait_until(lambda: device.started == ["first"], first)
    second = workplace.start("deploy", device.spec("second"), "--fleet", device.fleet)
    workplace.wait_until(lambda: waits(workplace, "second"), second)

    first.send_signal(number)
    first.communicate(timeout=PATIENCE_SECONDS)
    _, errors = second.communicate(timeout=PATIENCE_SECONDS)
    assert second.returncode == 0, errors
    assert device.started == ["first", "second"]
    assert not device.spoiled
    assert workplace.releases("first")[0].state == "error"
    assert workplace.running() == {f"moorage-{workplace.named('second')}.v1-r0-leader"}


def waits(workplace: Workplace, name: str) -> bool:
    """Whether its files are there and its turn is all that is missing."""
    return [row.state for row in workplace.releases(name)] == ["downloading"]
