"""Commands end in time and in little memory, whatever the engine that they ask answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests import hostile_engine
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

MOST_KIB = 300 * 1024

LOAD_SECONDS, DRAIN_SECONDS, PROBE_SECONDS = 10, 2, 1
"""The engine's own start has to fit into the first, however busy the machine is."""
SPARE_SECONDS = 200.0
"""For a command's own start, on a machine that is busy. What has no deadline takes for ever."""


MEASURE = """
import json, os, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), used.ru_maxrss], file)
"""
"""Runs a command out of a small process: the peak of a process counts from before its program."""


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        code: Its exit status.
        answer: What it printed, as data.
        seconds: How long it took.
        peak: KiB of RAM at most.
    """

    code: int
    answer: Any
    seconds: float
    peak: int


class Place:
    """A workplace whose engine can be turned hostile."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.switch = workplace.folder / "hostile"
        program = workplace.folder / "engine"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {hostile_engine.__file__} "$@"\n')
        program.chmod(0o755)
        self.spec = workplace.spec(
            engine=process_engine(program, HOSTILE=str(self.switch)),
            readiness={"deadlines": {"load_seconds": LOAD_SECONDS, "warm_up_seconds": 3}},
            stopping={"drain_seconds": DRAIN_SECONDS, "grace_seconds": 1},
        )

    def turn(self, misbehaviour: str, path: str) -> None:
        """Let the engine misbehave from now on."""
        draft = self.switch.with_suffix(".draft")
        draft.write_text(f"{misbehaviour}\n{path}\n")
        draft.replace(self.switch)
        time.sleep(0.2)

    def run(self, *arguments: object) -> Ended:
        """Run a command, and measure it."""
        place = self.workplace
        environment = {**place.environment, "MOORAGE_PROBE_SECONDS": "0"}
        environment["MOORAGE_PROBE_TIMEOUT_SECONDS"] = str(PROBE_SECONDS)
        measured, out = place.folder / "measured", place.folder / "out"
        argv = [
            sys.executable,
            "-S",
            "-c",
            MEASURE,
            str(measured),
            *place.argv(*arguments, "--json"),
        ]
        began = time.monotonic()
        with out.open("w") as file:
            subprocess.run(argv, env=environment, stdout=file, stderr=file, check=True)
        took = time.monotonic() - began
        code, peak = json.loads(measured.read_text())
        print(arguments[0], code, f"{took:.1f} s", f"{peak // 1024} MiB")
        text = out.read_text()
        return Ended(code, json.loads(text[text.index("{") :]), took, peak)


@pytest.fixture
def place(workplace: Workplace) -> Iterator[Place]:
    yield Place(workplace)
    workplace.run("retire", workplace.named("tiny"), code=None)
    assert workplace.is_clean()


def test_an_engine_that_turns_hostile_costs_no_more_than_its_deadlines(place: Place) -> None:
    failed = []
    for misbehaviour in ("drips its headers", "sends for ever"):
        place.turn(misbehaviour, "/health")
        ended = place.run("deploy", place.spec)
        assert ended.answer["error"]["cause"] == "load-timeout"
        assert ended.seconds < LOAD_SECONDS + SPARE_SECONDS
        assert place.workplace.is_clean()
        failed.append(ended)
    assert "the answer is larger than 4.0 MiB" in json.dumps(failed[-1].answer)

    place.turn("", "")
    deployed = place.run("deploy", place.spec)
    assert deployed.code == 0
    assert max(ended.peak for ended in failed) < MOST_KIB

    place.turn("sends for ever", "")
    ended = place.run("reconcile", "--fleet", place.workplace.folder / "fleet.yaml")
    assert ended.code == 0
    assert "the answer is larger than 4.0 MiB" in json.dumps(ended.answer)
    assert ended.seconds < SPARE_SECONDS
    assert ended.peak < MOST_KIB

    place.turn("drips its body", "")
    ended = place.run("retire", place.workplace.named("tiny"))
    assert ended.code == 0
    assert ended.seconds < DRAIN_SECONDS + SPARE_SECONDS
    assert ended.peak < MOST_KIB
