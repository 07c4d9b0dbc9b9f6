"""A release carries a load before it serves; one that is slower than its limits never does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.releases.release import Release
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

LOAD = {"requests": 8, "concurrency": 2, "max_tokens": 8, "max_slowdown": 3}
QUICK, SLOW = "paced:5", "paced:150"


def test_a_release_that_is_slower_than_the_one_before_does_not_take_over(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    def spec(behaviour: str, **load: Any) -> Path:
        engine = process_engine(lifecycle_program, behaviour)
        return workplace.spec(engine=engine, readiness={"acceptance": {**LOAD, **load}})

    workplace.run("deploy", spec(QUICK, tpot_p95="2s"))
    first = record(workplace)
    assert first.acceptance, "the first release is measured too"
    assert (first.acceptance.before, first.acceptance.misses) == (None, ())
    assert first.acceptance.figures.tpot_p50

    refused = workplace.json("deploy", spec(SLOW), code=6)["error"]
    assert refused["cause"] == "acceptance-failed"
    assert f"of {first.id}; at most 3 times allowed" in refused["detail"]
    failed, serving = workplace.releases()
    assert (failed.state, serving.state) == ("error", "running")
    assert failed.release
    assert failed.release.acceptance, "what was measured is on record"
    assert failed.release.acceptance.against == first.id
    assert workplace.running() == {f"moorage-{first.id}-r0-leader"}

    # The same engine under another limit: only noise makes a difference to the release before.
    workplace.run("deploy", spec(QUICK, tpot_p95="3s"))
    again = record(workplace)
    assert again.acceptance
    assert (again.acceptance.against, again.acceptance.misses) == (first.id, ())
    shown = workplace.run("show", again.id).stdout
    assert "TTFT p95" in shown

    workplace.run("deploy", spec(SLOW, warn_only=True))
    warned = record(workplace)
    assert warned.acceptance
    assert any(f"of {again.id}; at most 3" in miss for miss in warned.acceptance.misses)
    assert workplace.running() == {f"moorage-{warned.id}-r0-leader"}
    assert "TPOT p50 " in workplace.run("history", workplace.named("tiny")).stdout


def record(workplace: Workplace) -> Release:
    """The record of the release that serves."""
    serving = next(row for row in workplace.releases() if row.state == "running")
    assert serving.release
    return serving.release
