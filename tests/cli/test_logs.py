"""`moorage logs`: the lines of each engine, once each, until the release ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger import Ledger
from moorage.cli.app import app
from moorage.cli.logs import added_lines
from moorage.common.failures import Cause, Failure
from moorage.engines.workload import Workload
from moorage.placement.role import Role
from moorage.releases.release import FailureRecord
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_routes import started, switch
from tests.builders import REVISION, a_spec, a_workload

FIRST, SECOND = (f"moorage-tiny.v1-r{replica}-{Role.LEADER}" for replica in (0, 1))
LINES = st.lists(st.sampled_from(["all slots are idle", "200 OK", ""]), max_size=8)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.delenv("MOORAGE_LEDGER_URL", raising=False)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        yield ledger


def write(folder: Path, name: str, text: str) -> None:
    """Append to the log of a process."""
    log = folder / "run" / name / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.write(text)


def follow(monkeypatch: pytest.MonkeyPatch, *seconds: Callable[[], None]) -> Result:
    """Follow the log of `tiny`, while these things happen, one a second."""
    later = iter(seconds)
    monkeypatch.setattr("moorage.cli.logs.time.sleep", lambda _: next(later)())
    result = CliRunner().invoke(app, ["logs", "tiny", "--follow"])
    assert next(later, None) is None
    return result


def end(ledger: Ledger) -> None:
    ledger.releases.move("tiny.v1", ReleaseState.STOPPING)
    ledger.releases.end("tiny.v1", ReleaseState.STOPPED)
    for workload in ledger.releases.get("tiny.v1").workloads:
        ledger.workloads.drop(workload.name)


def test_following_prints_each_line_once_until_the_release_ends(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(ledger, started(ledger))
    write(tmp_path, FIRST, "loaded\nall slots are idle\n")
    result = follow(
        monkeypatch,
        lambda: write(tmp_path, FIRST, "200 OK\nall slots are idle\n"),
        lambda: None,
        lambda: write(tmp_path, FIRST, "bye\n"),
        lambda: end(ledger),
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        *("loaded", "all slots are idle", "200 OK", "all slots are idle", "bye")
    ]
    assert "tiny.v1 is stopped: its log has ended" in result.stderr


def test_an_engine_that_has_printed_nothing_yet_is_followed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(ledger, started(ledger))
    result = follow(monkeypatch, lambda: write(tmp_path, FIRST, "hello\n"), lambda: end(ledger))
    assert (result.exit_code, result.stdout) == (0, "hello\n")


def test_a_model_that_is_still_deployed_is_followed_from_its_first_line(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = ledger.releases.begin(a_spec(), REVISION, "")

    def start() -> None:
        for state in (ReleaseState.SCHEDULED, ReleaseState.STARTING):
            ledger.releases.move(release, state)
        ledger.workloads.put(release, a_workload(FIRST, release=release))
        write(tmp_path, FIRST, "loaded\n")

    def fail() -> None:
        ledger.workloads.drop(FIRST)
        ledger.releases.fail(release, Cause.ENGINE_EXITED)

    with ledger.locks.holding("tiny", wait_seconds=0, note="its flow"):
        result = follow(monkeypatch, lambda: None, start, fail)
    assert (result.exit_code, result.stdout) == (0, "loaded\n")
    assert "tiny.v1 has no log yet: it is pending\n" in result.stderr
    assert "tiny.v1 is error: its log has ended" in result.stderr


def test_a_deploy_that_was_killed_before_its_launch_is_not_waited_for(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.releases.begin(a_spec(), REVISION, "")
    result = follow(monkeypatch)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "tiny.v1 has no log yet: it is pending; its flow has ended" in result.stderr
    assert "tiny.v1 is pending: its flow has ended" in result.stderr


def test_all_replicas_are_followed_and_named(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(ledger, started(ledger, replicas=2))
    for name in (FIRST, SECOND):
        write(tmp_path, name, "loaded\n")
    result = follow(monkeypatch, lambda: write(tmp_path, FIRST, "200 OK\n"), lambda: end(ledger))
    assert result.stdout.splitlines() == [
        *(f"==> {FIRST} <==", "loaded", f"==> {SECOND} <==", "loaded"),
        *(f"==> {FIRST} <==", "200 OK"),
    ]


@pytest.fixture
def first_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of the first replica does not answer."""
    there = ProcessRuntime.logs

    def logs(self: ProcessRuntime, workload: Workload, tail: int) -> str:
        if workload.name == FIRST:
            raise Failure(Cause.RUNTIME_UNAVAILABLE, "gpu-1 does not answer")
        return there(self, workload, tail)

    monkeypatch.setattr(ProcessRuntime, "logs", logs)


@pytest.mark.usefixtures("first_is_away")
def test_a_host_that_is_away_hides_no_log_of_others(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(ledger, started(ledger, replicas=2))
    write(tmp_path, SECOND, "loaded\n")
    result = follow(monkeypatch, lambda: write(tmp_path, SECOND, "200 OK\n"), lambda: end(ledger))
    assert result.stdout.splitlines() == ["loaded", "200 OK"]
    assert result.stderr.count(f"no log of {FIRST}: gpu-1 does not answer") == 1


@pytest.mark.usefixtures("first_is_away")
def test_without_any_log_the_reason_is_the_failure(ledger: Ledger) -> None:
    switch(ledger, started(ledger))
    result = CliRunner().invoke(app, ["logs", "tiny"])
    assert result.exit_code == Cause.RUNTIME_UNAVAILABLE.exit_code
    assert "gpu-1 does not answer" in result.stderr


def test_a_model_that_did_not_wake_has_the_log_of_that_try(ledger: Ledger) -> None:
    switch(ledger, started(ledger))
    for state in (ReleaseState.STOPPING, ReleaseState.ASLEEP):
        ledger.releases.move("tiny.v1", state)
    for workload in ledger.releases.get("tiny.v1").workloads:
        ledger.workloads.drop(workload.name)
    log = {"suggestion": "Read the log.", "log_tail": "loading\nno such file\n"}
    why = FailureRecord(cause=Cause.ENGINE_EXITED, detail="exit code 1", **log)
    ledger.releases.note_wake("tiny.v1", why)
    ledger.releases.fail(started(ledger), "no-fit")  # a later deploy

    result = CliRunner().invoke(app, ["logs", "tiny"])

    assert (result.exit_code, result.stdout) == (0, "loading\nno such file\n")


@given(before=LINES, new=LINES, window=st.integers(1, 8))
def test_lines_that_leave_the_window_do_not_come_again(
    before: list[str], new: list[str], window: int
) -> None:
    """Where lines repeat, only their number is known: never are more printed than came."""
    seen, now = before[-window:], (before + new)[-window:]
    added = list(added_lines(seen, now))
    assert added == now[len(now) - len(added) :]
    assert len(added) <= len(new)
    if len(before) + len(new) <= window:
        assert added == new


@pytest.mark.parametrize(
    ("before", "now", "added"),
    [
        (["a", "b"], ["cut a", "b", "c"], ["c"]),
        (["a", "Loading 3"], ["a", "Loading 30%", "b"], ["Loading 30%", "b"]),
        (["a", "b"], ["x", "y"], ["x", "y"]),
        ([], ["x"], ["x"]),
        (["a"], [], []),
    ],
)
def test_cut_and_incomplete_lines(before: list[str], now: list[str], added: list[str]) -> None:
    assert added_lines(before, now) == added
