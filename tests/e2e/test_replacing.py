"""Changing what serves: nothing is lost on the way, whatever goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server]

DIES_WHILE_THE_OTHER_LOADS = (
    "if [ $(($1 % 2)) = 0 ]; then LIFECYCLE=dies-later:1; else LIFECYCLE=slow:4; fi;"
    ' export LIFECYCLE; shift; exec "$@"'
)


def test_a_missing_secret_is_told_before_the_old_release_stops(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    port = workplace.first_port
    workplace.run("deploy", workplace.spec(engine=engine, port=port))
    before = workplace.running(), workplace.processes()

    spec = workplace.spec(engine=engine, port=port, secrets={"KEY": "NO_SUCH_SECRET"})
    for command in ("plan", "deploy"):
        error = workplace.json(command, spec, code=2)["error"]
        assert (error["cause"], error["detail"]) == ("secret-missing", "NO_SUCH_SECRET")
    assert (workplace.running(), workplace.processes()) == before


def test_a_plan_says_that_a_deploy_would_change_nothing(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program), port=workplace.first_port)
    workplace.run("deploy", spec)
    assert "would change nothing" in workplace.run("plan", spec).stdout


def test_a_replica_that_dies_while_another_loads_fails_the_release(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    engine["command"] = [
        "sh",
        "-c",
        DIES_WHILE_THE_OTHER_LOADS,
        "sh",
        "{{port}}",
        *engine["command"],
    ]
    error = workplace.json("deploy", workplace.spec(engine=engine, replicas=2), code=6)["error"]
    assert error["cause"] == "engine-exited"
    assert workplace.is_clean()


def test_the_room_of_a_release_that_stopped_first_is_kept_for_its_return(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    fleet = workplace.folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("name: local,", "name: local, ram: 1GiB,"))
    most, port = "600MiB", workplace.first_port + 30
    engine = process_engine(lifecycle_program)
    old: dict[str, Any] = {"engine": engine, "placement": {"ram": most}, "port": port}
    workplace.run("deploy", workplace.spec(**old))
    changed = {**old, "engine": process_engine(lifecycle_program, "deaf")}
    small = {
        **changed,
        "placement": {"ram": "64MiB"},
        "readiness": {"deadlines": {"load_seconds": 9}},
    }
    replacing = workplace.start("deploy", workplace.spec(**small))
    workplace.wait_until(
        lambda: len(workplace.releases()) == 2 and "v2" in str(workplace.running())
    )

    other = workplace.spec(
        "other", engine=process_engine(lifecycle_program), placement={"ram": most}
    )
    assert workplace.json("deploy", other, code=3)["error"]["cause"] == "no-fit"

    replacing.communicate(timeout=PATIENCE_SECONDS)
    assert [row.state for row in workplace.releases()] == ["error", "running"]
    assert workplace.running() == {f"moorage-{workplace.named('tiny')}.v1-r0-leader"}


def test_a_release_without_a_record_is_shown_as_data(workplace: Workplace) -> None:
    engine = {"name": "vllm", "runtime": "process", "command": ["sleep", "60"]}
    run = workplace.start("deploy", workplace.spec(engine=engine))
    workplace.wait_until(lambda: bool(workplace.running()))
    assert workplace.json("show", workplace.named("tiny"))["state"] == "starting"
    run.kill()
    run.communicate()


def test_a_host_must_keep_its_name_while_something_is_claimed_on_it(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    workplace.run("deploy", workplace.spec(engine=engine))
    renamed = workplace.folder / "renamed.yaml"
    renamed.write_text("hosts: [{name: other-name}]\n")
    other = workplace.spec("other", engine=engine)
    error = workplace.json("deploy", other, "--fleet", renamed, code=2)["error"]
    assert error["cause"] == "bad-fleet"
    assert "holds claims on host 'local'" in error["detail"]
