"""`moorage status`, of releases that are unfinished, have failed, or could not be stopped."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.cli.options import open_ledger
from moorage.common.failures import Cause, ExitCode
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_release, a_spec


@pytest.mark.parametrize(("at_work", "left"), [(True, False), (False, True)])
def test_a_release_that_nobody_finishes_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_work: bool, left: bool
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    ledger = open_ledger()
    ledger.releases.begin(a_spec(), REVISION, "")
    lock = ledger.locks.holding("tiny", wait_seconds=0) if at_work else nullcontext()
    with lock:
        for command in ("status", "history tiny", "show tiny", "show tiny --json"):
            shown = CliRunner().invoke(app, command.split()).output
            words = "its flow has ended: `moorage reconcile` cleans up"
            assert (words in " ".join(shown.split())) == left, command


def test_a_stop_that_failed_is_shown_beside_the_release_that_serves_by_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its host was away: it may still run there, and keeps its claims."""
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    releases = open_ledger().releases
    for _ in range(2):
        release = releases.begin(a_spec(), REVISION, "")
        releases.move(release, ReleaseState.SCHEDULED)
        releases.move(release, ReleaseState.STARTING)
        releases.take_over(a_release(release))
        if release == "tiny.v1":
            releases.move(release, ReleaseState.STOPPING)
    shown = CliRunner().invoke(app, ["status", "tiny", "--json"]).output
    assert [(one["id"], one["state"]) for one in json.loads(shown)] == [
        ("tiny.v2", "running"),
        ("tiny.v1", "stopping"),
    ]


def test_a_failure_is_shown_until_its_model_is_retired(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.delenv("MOORAGE_LEDGER_URL", raising=False)
    releases = open_ledger().releases

    def failing() -> None:
        releases.give_up(releases.begin(a_spec(), REVISION, ""), Cause.INTERRUPTED)

    def states(*options: str) -> list[str]:
        shown = CliRunner().invoke(app, ["status", "--json", *options]).output
        return [one["state"] for one in json.loads(shown)]

    def check(*options: str) -> int:
        return CliRunner().invoke(app, ["status", "--check", *options]).exit_code

    serving = releases.begin(a_spec(), REVISION, "")
    releases.move(serving, ReleaseState.SCHEDULED)
    releases.move(serving, ReleaseState.STARTING)
    releases.take_over(a_release(serving))
    failing()
    assert states() == ["running"]
    releases.move(serving, ReleaseState.STOPPING)
    releases.end(serving, ReleaseState.STOPPED, "retired")
    assert (states(), states("tiny"), states("--all")) == ([], ["error"], ["error"])
    assert check("--all") == ExitCode.OK
    failing()
    assert (states(), check()) == (["error"], ExitCode.ENGINE)
    assert releases.retire_failed("tiny") == 1, "the other one was retired before"
    assert (states(), check()) == ([], ExitCode.OK)
