"""`moorage ledger` and `moorage show`: what they print, and how they end."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.adapters.ledger import Ledger, copies
from moorage.adapters.ledger.tables import NEWEST
from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.cli.app import app
from moorage.cli.output import WIDE, out
from moorage.common.failures import Cause, ExitCode
from moorage.gateway.gateway import Gateway
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_release, a_spec

Run = Callable[..., Result]
WAY = ("analyzing", "scheduled", "downloading", "starting")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(out, "_width", WIDE)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    for name in ("MOORAGE_LEDGER_URL", "PREFECT_API_URL", "PREFECT_UI_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{path}")) as ledger:
        yield ledger


@pytest.fixture
def run(path: Path) -> Run:  # noqa: ARG001
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def as_json(result: Result) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def running(ledger: Ledger, **fields: Any) -> str:
    spec = a_spec(**fields)
    release = ledger.releases.begin(spec, REVISION, "run-1")
    with writing_as(Author("run-1")):
        for state in WAY:
            ledger.releases.move(release, ReleaseState(state))
        ledger.releases.take_over(a_release(release, spec=spec, flow_run_id="run-1"))
    return release


def test_show_tells_the_way_through_the_states(run: Run, ledger: Ledger) -> None:
    release = running(ledger)
    shown = run("show", release)
    assert shown.exit_code == ExitCode.OK
    lines = shown.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("States"))
    states = [line.split()[0] for line in lines[at + 2 : at + 8]]
    assert states == ["pending", *WAY, "running"]
    assert "so far" in lines[at + 7]
    assert ["Flow", "run", "run-1"] in [line.split() for line in lines], "once, for all states"


def test_show_gives_programs_states_times_causes_and_the_pages_of_the_runs(
    run: Run, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = running(ledger)
    ledger.releases.move(release, ReleaseState.UNREACHABLE, "gpu-1 is away")
    monkeypatch.setenv("PREFECT_API_URL", "http://server:4200/api")
    content = as_json(run("show", release, "--json"))
    assert (content["state"], content["cause"]) == ("unreachable", "gpu-1 is away")
    assert [one["state"] for one in content["states"]] == [
        "pending",
        *WAY,
        "running",
        "unreachable",
    ]
    assert all(one["seconds"] >= 0 for one in content["states"][:-1])
    assert content["states"][-1]["seconds"] is None
    assert content["states"][-1]["cause"] == "gpu-1 is away"
    assert content["states"][0]["flow_run_url"] == "http://server:4200/v2/runs/flow-run/run-1"
    assert content["states"][-1]["flow_run_url"] == ""
    assert content["plan"] is None


def test_a_release_without_a_record_shows_where_it_is(run: Run, ledger: Ledger) -> None:
    release = ledger.releases.begin(a_spec(), "", "run-1")
    with writing_as(Author("run-1", requested_by="ann@laptop, command line")):
        ledger.releases.move(release, ReleaseState.ANALYZING)
    with ledger.locks.holding("tiny", wait_seconds=0):
        shown = run("show", release).stdout
    assert f"{release} is analyzing (in progress); it has no record. " in shown
    assert "Its flow run is run-1, requested by ann@laptop, command line." in shown
    assert "ann@laptop, command line" in run("history", "tiny").stdout, "also of a killed run"
    assert [one["state"] for one in as_json(run("show", release, "--json"))["states"]] == [
        "pending",
        "analyzing",
    ]


def test_a_history_shows_the_newest_and_says_that_there_are_older_ones(
    run: Run, ledger: Ledger
) -> None:
    first, second = (ledger.releases.begin(a_spec(), "", "") for _ in range(2))
    shown = run("history", "tiny", "--limit", 1)
    assert (second in shown.stdout, first in shown.stdout) == (True, False)
    assert "older releases" in shown.stderr
    (row,) = json.loads(run("history", "tiny", "-n", 1, "--json").stdout)
    assert row["id"] == second
    every = run("history", "tiny", "--limit", 2)
    assert first in every.stdout
    assert not every.stderr


def test_status_tells_when_a_model_was_asked_last_and_when_it_sleeps(
    run: Run, ledger: Ledger
) -> None:
    release = running(ledger, keep_alive="1h")
    ledger.gateways.put(Gateway(name="main", machine="box"))
    asked = datetime.now(UTC) - timedelta(minutes=10)
    ledger.gateways.report_use("main", {release: asked})
    [row] = json.loads(run("status", "--json").stdout)
    assert datetime.fromisoformat(row["last_request"]) == asked
    serves = datetime.fromisoformat(row["since"])
    assert datetime.fromisoformat(row["sleeps_at"]) == serves + timedelta(hours=1)
    shown = run("status").stdout
    assert "last request 10 min" in shown
    assert "sleeps in " in shown
    later = serves + timedelta(seconds=30)
    ledger.gateways.report_use("main", {release: later})
    [row] = json.loads(run("status", "--json").stdout)
    assert datetime.fromisoformat(row["sleeps_at"]) == later + timedelta(hours=1)


def test_what_nobody_has_asked_has_no_last_request_and_still_falls_asleep(
    run: Run, ledger: Ledger
) -> None:
    running(ledger, keep_alive="1h")
    ledger.gateways.put(Gateway(name="main", machine="box"))
    [row] = json.loads(run("status", "--json").stdout)
    serves = datetime.fromisoformat(row["since"])
    assert row["last_request"] is None
    assert datetime.fromisoformat(row["sleeps_at"]) == serves + timedelta(hours=1)
    assert "last request" not in run("status").stdout


def test_the_load_of_an_engine_that_is_not_asked_is_a_dash_with_its_reason(
    run: Run, ledger: Ledger
) -> None:
    release = running(ledger, keep_alive="1h")
    ledger.gateways.put(Gateway(name="main", machine="box"))
    ledger.gateways.report_use("main", {release: datetime.now(UTC) - timedelta(minutes=10)})
    [row] = json.loads(run("status", "--load", "--json").stdout)
    unknown = {"running": None, "waiting": None, "tokens_per_second": None, "why": "it is down"}
    assert row["load"] == unknown
    shown = run("status", "--load").stdout.splitlines()[-1].split("  ")
    assert [cell.strip() for cell in shown if cell.strip() == "-"] == ["-"] * 3
    assert shown[-1].strip().startswith("10 min")


def test_status_says_that_a_model_is_down_whatever_the_ledger_says(
    run: Run, ledger: Ledger
) -> None:
    release = running(ledger)
    shown = run("status")
    assert (shown.exit_code, f"{release}  down" in shown.stdout) == (ExitCode.OK, True)
    [row] = json.loads(run("status", "--json").stdout)
    assert (row["state"], row["health"], row["alive"]) == ("running", "down", False)
    assert run("status", "--check").exit_code == ExitCode.ENGINE


def test_status_leaves_retired_models_out_unless_they_are_meant(run: Run, ledger: Ledger) -> None:
    release = running(ledger)
    ledger.releases.move(release, ReleaseState.STOPPING)
    ledger.releases.end(release, ReleaseState.STOPPED, "retired")
    shown = run("status", "--check")
    assert (shown.exit_code, "`--all` shows retired models" in shown.stdout) == (ExitCode.OK, True)
    for words in (("--all",), ("tiny",)):
        assert release in run("status", *words).stdout


def test_status_shows_a_release_that_cannot_be_seen(run: Run, ledger: Ledger) -> None:
    release = running(ledger)
    ledger.releases.move(release, ReleaseState.UNREACHABLE, "gpu-1 is away")
    shown = run("status").stdout
    assert release in shown
    assert "unreachable" in shown
    assert "gpu-1 is away" in shown


def test_a_backup_is_taken_and_brought_back(
    run: Run, ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    release, backup = running(ledger), tmp_path / "backup.db"
    taken = run("ledger", "backup", backup)
    assert (taken.exit_code, backup.exists()) == (ExitCode.OK, True)
    ledger.close()
    path.write_bytes(b"damaged" * 1000)
    assert run("status").exit_code == ExitCode.MACHINE
    assert run("ledger", "check").exit_code == ExitCode.MACHINE
    asked = run("ledger", "restore", backup, "--json")
    assert f"no terminal to confirm on: Replace {path}" in as_json(asked)["error"]["detail"]
    restored = run("ledger", "restore", backup, "--yes")
    assert restored.exit_code == ExitCode.OK, restored.stdout
    assert "The old ledger is in" in restored.stdout
    assert run("ledger", "check").stdout.endswith("is sound\n")
    assert as_json(run("show", release, "--json"))["state"] == "running"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_backup_that_is_interrupted_leaves_nothing(
    run: Run,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    running(ledger)
    there = list[str]()

    def interrupt(_path: Path) -> None:
        there.extend(one.name for one in tmp_path.glob("backup.db.part-*"))
        signal.raise_signal(number)

    monkeypatch.setattr(copies, "_to_disk", interrupt)
    # Whoever runs the tests may ignore it, as `nohup` does; then so does the command.
    before = signal.signal(number, signal.default_int_handler)
    try:
        answer = run("ledger", "backup", tmp_path / "backup.db", "--json")
    finally:
        signal.signal(number, before)
    assert answer.exit_code == 130
    assert as_json(answer)["error"]["cause"] == Cause.INTERRUPTED
    assert len(there) == 1
    assert {one.name for one in tmp_path.iterdir()} == {"home"}


@pytest.mark.parametrize("command", [("status",), ("show", "tiny"), ("ledger", "check")])
def test_a_row_that_cannot_be_decoded_is_named(
    run: Run, ledger: Ledger, path: Path, command: tuple[str, ...]
) -> None:
    release = running(ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("UPDATE releases SET record = '[1,2'")
    answer = run(*command, "--json")
    assert answer.exit_code == ExitCode.MACHINE
    assert f"row {release} of `releases` cannot be decoded" in answer.stdout


def test_a_damaged_ledger_is_told_with_its_path_and_what_to_do(run: Run, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"damaged" * 1000)
    answer = run("status", "--json")
    error = as_json(answer)["error"]
    assert answer.exit_code == error["exit_code"] == ExitCode.MACHINE
    assert error["cause"] == Cause.LEDGER_DAMAGED
    assert str(path) in error["detail"]
    assert "moorage ledger restore FILE" in error["suggestion"]
    checked = run("ledger", "check", "--json")
    assert as_json(checked)["problems"] == ["file is not a database"]


def test_migrating_prints_the_schema(run: Run, ledger: Ledger) -> None:
    assert as_json(run("ledger", "migrate", "--json"))["schema"] == NEWEST
    assert ledger.releases.models() == []


def test_postgresql_is_backed_up_by_its_own_tools(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_LEDGER_URL", "postgresql+psycopg://moorage:topsecret@db/moorage")
    for command in ("backup", "restore"):
        answer = run("ledger", command, tmp_path / "file", "--json")
        assert answer.exit_code == ExitCode.BAD_INPUT
        assert "pg_" in as_json(answer)["error"]["suggestion"]
        assert "topsecret" not in answer.stdout


@pytest.mark.parametrize("words", [("check",), ("restore", "x.db", "--yes"), ("backup", "x.db")])
def test_a_path_that_was_written_as_a_url_is_a_mistake_in_the_setting(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MOORAGE_LEDGER_URL", "/data/ledger.db")
    result = run("ledger", *words, "--json")
    error = as_json(result)["error"]
    assert error["cause"] == Cause.LEDGER_UNAVAILABLE
    assert "MOORAGE_LEDGER_URL" in error["detail"]
    assert "sqlite:///" in error["suggestion"]
