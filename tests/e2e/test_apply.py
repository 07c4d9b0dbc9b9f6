"""What is meant to run, as files: applied, pruned, exported and brought back."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.files.specs import load_spec
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server]

HURRY = {"deadlines": {"load_seconds": 3, "warm_up_seconds": 3}}


def test_files_are_applied_and_only_what_they_own_is_pruned(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    workplace.run("deploy", workplace.spec("hand", engine=engine))
    (workplace.folder / "hand.yaml").unlink()
    for name in ("one", "two"):
        workplace.spec(name, engine=engine)
    broken = workplace.spec("wrong", engine=process_engine(lifecycle_program, "die"))
    broken.write_text(f"{broken.read_text()}readiness: {HURRY}\n")

    assert actions(workplace.json("apply", workplace.folder, "--dry-run")) == {
        "one": "create",
        "two": "create",
        "wrong": "create",
    }
    assert not workplace.releases("one"), "a dry run begins nothing"
    refused = workplace.json("apply", workplace.folder, code=2)["error"]
    assert "--yes" in refused["suggestion"]

    done = workplace.json("apply", workplace.folder, "--yes", "--at-once", 2, code=6)
    outcomes = {one["model"]: (one["outcome"], one["cause"]) for one in done["applied"]}
    assert outcomes == {
        workplace.named("one"): ("done", ""),
        workplace.named("two"): ("done", ""),
        workplace.named("wrong"): ("failed", "engine-unsupported-model"),
    }
    broken.unlink()
    (workplace.folder / "two.yaml").unlink()
    workplace.spec("one", engine=engine, context=512)
    plan = workplace.json("apply", workplace.folder, "--dry-run")
    assert actions(plan) == {"two": "left", "one": "change"}
    (change,) = plan["plan"][1]["changes"]
    assert (change["what"], change["before"], change["after"]) == ("context", "auto", "512")

    shown = workplace.run("apply", workplace.folder, "--yes", "--prune")
    assert "retire" in shown.stdout
    assert "one: verify" in shown.stderr, "each step is shown under the name of its model"
    assert states(workplace, "one", "two", "hand") == ["running", "stopped", "running"]
    again = workplace.json("apply", workplace.folder, "--yes", "--prune")
    assert actions(again) == {"one": "unchanged"}


def test_what_was_exported_comes_back_as_it_was(
    workplace: Workplace, lifecycle_program: Path, tmp_path: Path
) -> None:
    wanted = {
        "one": workplace.spec("one", engine=process_engine(lifecycle_program, NUMBER="007")),
        "two": workplace.spec("two", engine=process_engine(lifecycle_program), replicas=2),
    }
    workplace.run("apply", workplace.folder, "--yes")
    fleet = workplace.folder / "fleet.yaml"
    folder = tmp_path / "exported"
    files = workplace.json("export", folder, "--fleet", fleet)["files"]
    names = {f"{workplace.named(name)}.yaml" for name in wanted} | {"fleet.yaml"}
    assert {Path(file).name for file in files} == names
    for name, path in wanted.items():
        assert load_spec(folder / f"{workplace.named(name)}.yaml") == load_spec(path)
    workplace.run("export", folder, "--fleet", fleet)
    (folder / f"{workplace.named('one')}.yaml").write_text("name: mine\n")
    workplace.run("export", folder, code=8)
    workplace.run("export", folder, "--overwrite")

    for name in wanted:
        workplace.run("retire", workplace.named(name))
    shutil.copy(fleet, folder)
    workplace.run("import", folder, "--yes")
    for name, path in wanted.items():
        newest, first = workplace.releases(name)
        assert newest.state == "running"
        assert newest.spec_digest == first.spec_digest == load_spec(path).digest


def test_what_is_dead_is_brought_back_and_a_failure_may_stop_the_rest(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    workplace.spec("b-one", engine=process_engine(lifecycle_program))
    workplace.run("apply", workplace.folder, "--yes")
    for process in workplace.processes():
        process.kill()
    dies = process_engine(lifecycle_program, "die")
    workplace.spec("a-dies", engine=dies, readiness=HURRY)
    options = ("--yes", "--stop-on-failure", "--at-once", 1)
    done = workplace.json("apply", workplace.folder, *options, code=6)
    assert actions(done) == {"a-dies": "create", "b-one": "restore"}
    assert [one["outcome"] for one in done["applied"]] == ["failed", "skipped"]


def test_an_apply_that_is_interrupted_undoes_every_deploy(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    for name in ("one", "two"):
        workplace.spec(name, engine=process_engine(lifecycle_program, "unhealthy"))
    run = workplace.start("apply", workplace.folder, "--yes")
    workplace.wait_until(lambda: len(workplace.running()) == 2)
    run.send_signal(signal.SIGINT)
    output = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == 130, output
    assert workplace.is_clean()
    assert {workplace.releases(name)[0].cause for name in ("one", "two")} == {"interrupted"}


def test_mistakes_of_all_files_are_told_at_once(workplace: Workplace) -> None:
    workplace.spec("one", replicas=0)
    workplace.spec("two", contxt=1)
    shutil.copy(workplace.spec("three"), workplace.folder / "four.yaml")
    error = workplace.json("apply", workplace.folder, code=2)["error"]
    assert [Path(found["file"]).name for found in error["problems"]] == [
        "one.yaml",
        "three.yaml",
        "two.yaml",
    ]


def actions(answer: dict[str, Any]) -> dict[str, str]:
    """What is to be done, by the short name of the model, in order."""
    return {one["model"].split("-", 2)[2]: one["action"] for one in answer["plan"]}


def states(workplace: Workplace, *names: str) -> list[str]:
    return [workplace.releases(name)[0].state for name in names]
