"""Models redeployed from the command line: what has moved, in waves, by policy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server]

HURRY = {"deadlines": {"load_seconds": 3, "warm_up_seconds": 3}}


@pytest.fixture
def fleet(workplace: Workplace) -> tuple[str, Path]:
    return "--fleet", workplace.folder / "fleet.yaml"


def outcomes(workplace: Workplace, ended: Any) -> dict[str, tuple[str, int]]:
    """What became of each model, and in which wave."""
    prefix = f"{workplace.prefix}-"
    return {one["model"].removeprefix(prefix): (one["outcome"], one["wave"]) for one in ended}


def test_only_what_has_moved_is_redeployed_wave_by_wave(
    workplace: Workplace, lifecycle_program: Path, fleet: tuple[str, Path]
) -> None:
    engine = process_engine(lifecycle_program)
    moving = workplace.folder / "moving"
    shutil.copytree(workplace.model, moving)
    for name, source in (("a", moving), ("b", moving), ("c", workplace.model)):
        labels = {"tier": "gold" if name < "c" else "low"}
        workplace.spec(name, engine=engine, source=f"file://{source}", labels=labels)
    workplace.run("apply", workplace.folder, "--yes")
    (moving / "generation_config.json").write_text('{"temperature": 0.5}')

    dry = workplace.json("redeploy", "--all", "--dry-run", *fleet)
    assert outcomes(workplace, dry) == {
        "a": ("would redeploy", 0),
        "b": ("would redeploy", 0),
        "c": ("unchanged", 0),
    }
    assert "moved branch" in dry[0]["why"]
    watched = workplace.json("redeploy", "--all", "--by-policy", "--yes", *fleet)
    assert {one["outcome"] for one in watched} == {"notified", "unchanged"}
    assert len(workplace.releases("a")) == 1, "without a redeploy, drift is only reported"

    done = workplace.json("redeploy", "--label", "tier=gold", "--wave", "50%", *fleet)
    assert outcomes(workplace, done) == {"a": ("redeployed", 1), "b": ("redeployed", 2)}
    assert done[0]["after"] == f"{workplace.named('a')}.v2"
    record = workplace.releases("a")[0].release
    assert record
    assert record.applied_from == str(workplace.folder)
    shown = workplace.run("redeploy", "--all", "--yes", *fleet)
    assert "redeployed" not in shown.stdout


def test_a_file_goes_before_what_serves_and_the_first_failure_stops_the_rest(
    workplace: Workplace, lifecycle_program: Path, fleet: tuple[str, Path]
) -> None:
    for name in ("a", "b", "c"):
        workplace.spec(name, engine=process_engine(lifecycle_program))
    workplace.run("apply", workplace.folder, "--yes")
    for name in ("a", "b", "c"):
        dies = process_engine(lifecycle_program, "die" if name == "b" else "ok", CHANGED="1")
        workplace.spec(name, engine=dies, readiness=HURRY)
    options = ("--all", "--yes", "--files", workplace.folder, *fleet)
    done = workplace.json("redeploy", *options, code=6)
    assert outcomes(workplace, done) == {
        "a": ("redeployed", 1),
        "b": ("failed", 2),
        "c": ("not begun", 3),
    }
    assert workplace.releases("c")[0].number == 1
    serving = workplace.ledger.releases.running(workplace.named("b"))
    assert serving
    assert serving.number == 1

    on = workplace.json("redeploy", *options, "--stop-at", "never", code=6)
    assert outcomes(workplace, on)["c"] == ("redeployed", 2)


def test_a_change_that_has_failed_is_only_reported_until_it_differs(
    workplace: Workplace, lifecycle_program: Path, fleet: tuple[str, Path]
) -> None:
    policy = {"on_changed_file": "redeploy"}
    changed: dict[str, Any] = {"redeploy": policy, "readiness": HURRY}
    workplace.spec("a", engine=process_engine(lifecycle_program), redeploy=policy)
    workplace.run("apply", workplace.folder, "--yes")
    options = ("--all", "--by-policy", "--yes", "--files", workplace.folder, *fleet)
    workplace.spec("a", engine=process_engine(lifecycle_program, "die"), **changed)
    (failed,) = workplace.json("redeploy", *options, code=6)
    assert failed["outcome"] == "failed"
    (again,) = workplace.json("redeploy", *options)
    assert again["outcome"] == "notified"
    assert again["why"].startswith(f"{failed['before'][:-1]}2 failed with it (engine-")
    workplace.spec("a", engine=process_engine(lifecycle_program, CHANGED="1"), **changed)
    (other,) = workplace.json("redeploy", *options)
    assert other["outcome"] == "redeployed"


def test_what_was_deployed_while_a_wave_waited_is_left_as_it_is(
    workplace: Workplace, lifecycle_program: Path, fleet: tuple[str, Path]
) -> None:
    engine = process_engine(lifecycle_program)
    for name in ("a", "b"):
        workplace.spec(name, engine=engine)
    workplace.run("apply", workplace.folder, "--yes")
    waves = workplace.start(
        "redeploy", "--all", "--yes", "--force", "--pause", "8", "--json", *fleet
    )
    workplace.wait_until(lambda: len(workplace.releases("a")) == 2)
    changed = workplace.spec("b", engine=process_engine(lifecycle_program, CHANGED="1"))
    workplace.run("deploy", changed)
    [newest, _] = workplace.releases("b")
    done = json.loads(waves.communicate(timeout=PATIENCE_SECONDS)[0])
    assert outcomes(workplace, done) == {"a": ("redeployed", 1), "b": ("unchanged", 2)}
    assert f"{newest.id} is there by now" in done[1]["message"]
    assert [row.id for row in workplace.releases("b") if row.state == "running"] == [newest.id]


def test_labels_and_policies_are_noted_and_nothing_is_started_again(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    workplace.run("deploy", workplace.spec("a", engine=engine))
    policy = {"on_moved_branch": "redeploy"}
    spec = workplace.spec("a", engine=engine, labels={"tier": "gold"}, redeploy=policy)
    (intent,) = workplace.json("apply", spec, "--dry-run")["plan"]
    assert (intent["action"], len(intent["changes"])) == ("note", 2)
    workplace.run("apply", spec, "--yes")
    (row,) = workplace.releases("a")
    assert row.release
    assert row.release.spec.labels == {"tier": "gold"}
    assert row.release.spec.redeploy.on_moved_branch == "redeploy"
    assert workplace.json("apply", spec, "--dry-run")["plan"][0]["action"] == "unchanged"


def test_by_force_a_model_is_replaced_though_nothing_has_moved(
    workplace: Workplace, lifecycle_program: Path, fleet: tuple[str, Path]
) -> None:
    workplace.run("deploy", workplace.spec("a", engine=process_engine(lifecycle_program)))
    name = workplace.named("a")
    assert workplace.json("redeploy", name, *fleet)[0]["outcome"] == "unchanged"
    (one,) = workplace.json("redeploy", name, "--force", *fleet)
    assert (one["before"], one["after"]) == (f"{name}.v1", f"{name}.v2")
    for process in workplace.processes():
        process.kill()
    (dead,) = workplace.json("redeploy", name, *fleet)
    assert dead["why"].startswith("does not serve")
    assert dead["outcome"] == "redeployed"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ((), "no models selected"),
        (("--label", "tier"), "a label is KEY=VALUE"),
        (("nobody",), "no model that runs or sleeps is named nobody"),
        (("--all", "--files", "/there/is/no/folder"), "the folder does not exist"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    workplace: Workplace, arguments: tuple[str, ...], answer: str
) -> None:
    assert answer in workplace.json("redeploy", *arguments, code=2)["error"]["detail"]


def test_without_a_server_and_a_terminal_nobody_can_agree(
    workplace: Workplace, lifecycle_program: Path, tmp_path: Path
) -> None:
    alone = {"PREFECT_HOME": str(tmp_path / "prefect")}
    workplace.environment = {**workplace.environment, **alone}
    del workplace.environment["PREFECT_API_URL"]
    engine = process_engine(lifecycle_program)
    spec = workplace.spec("a", engine=engine, redeploy={"approval": "required"})
    error = workplace.json("deploy", spec, code=2)["error"]
    assert error["cause"] == "approval-impossible"
    assert "PREFECT_API_URL" in error["suggestion"]
    assert workplace.releases("a") == []
