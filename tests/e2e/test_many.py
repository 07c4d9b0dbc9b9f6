"""Many models in one run: in waves, on a page that can be read, and each with its own luck."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.prefect_server import PrefectServer
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.server]

MODELS = 12
LOG = {"PREFECT_LOGGING_LEVEL": "INFO", "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL"}
SMALL: dict[str, Any] = {
    "placement": {"accelerators": 0, "ram": "8MiB"},
    "stopping": {"drain_seconds": 0},
}
FOR_EVER = 1_000


def unwilling(workplace: Workplace, times: dict[str, int], *arguments: object) -> Any:
    """Run a command whose Prefect server refuses runs for some models; what it prints."""
    refused = {workplace.named(name): count for name, count in times.items()}
    words = ["-m", "tests.e2e.unwilling", json.dumps(refused), *map(str, arguments), "--json"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=REPOSITORY,
        env={**workplace.environment, "PREFECT_CLIENT_MAX_RETRIES": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)


def found(server: PrefectServer, kind: str, **which: Any) -> list[dict[str, Any]]:
    """What there is of a kind, such as task runs."""
    listed: list[dict[str, Any]] = server.post(f"/{kind}/filter", which)
    return listed


def ended_tasks(server: PrefectServer, which: dict[str, Any]) -> list[dict[str, Any]]:
    """Task runs, once the server has written the end of all that it has written."""

    def ended() -> list[dict[str, Any]]:
        runs = found(server, "task_runs", task_runs=which)
        return runs if len(runs) > MODELS and all(run["end_time"] for run in runs) else []

    return until(ended)


def test_many_models_go_in_waves_and_their_run_can_be_read(
    workplace: Workplace, lifecycle_program: Path, prefect_server: PrefectServer
) -> None:
    names = [f"m{number:02}" for number in range(MODELS)]
    for name in names:
        workplace.spec(name, engine=process_engine(lifecycle_program), **SMALL)
    fleet = "--fleet", workplace.folder / "fleet.yaml"
    workplace.run("apply", workplace.folder, "--yes", "--at-once", 6)
    workplace.environment.update(LOG)
    options = ("--all", "--yes", "--force", "--wave", "4", *fleet)
    done = workplace.json("redeploy", *options)
    assert [(one["outcome"], one["wave"]) for one in done] == [
        ("redeployed", number // 4 + 1) for number in range(MODELS)
    ]

    (parent,) = found(
        prefect_server,
        "flow_runs",
        flows={"name": {"any_": ["redeploy-models"]}},
        sort="START_TIME_DESC",
        limit=1,
    )
    own = {"flow_run_id": {"any_": [parent["id"]]}}
    assert parent["name"] == "redeploy all"
    below = {"parent_flow_run_id": {"any_": [parent["id"]]}}
    assert len(found(prefect_server, "flow_runs", flow_runs=below)) == MODELS
    assert len(ended_tasks(prefect_server, own)) == MODELS + 1, "and one look"
    assert len(prefect_server.log(parent["id"]).splitlines()) < MODELS + 10
    artifacts = found(prefect_server, "artifacts", artifacts=own)
    shown = {one["key"]: one for one in artifacts}
    assert len(artifacts) == len(shown) == 2
    assert shown["redeploy-progress"]["data"] == 100
    page = shown["redeploy"]["data"]
    assert page.startswith("# redeploy all\n\n12 redeployed.")
    assert "## Wave 3 of 3: 4 redeployed" in page
    for one in done:
        assert f"/runs/flow-run/{one['flow_run']}) | redeployed | {one['before']}" in page
        assert f"[{one['after']}](" in page


def test_a_server_that_refuses_some_runs_keeps_no_other_model_from_being_deployed(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    for name in ("a", "b", "c"):
        workplace.spec(name, engine=process_engine(lifecycle_program), **SMALL)
    options = ("--yes", "--at-once", 1)
    times = {"a": FOR_EVER, "b": 2}
    answer = unwilling(workplace, times, "apply", workplace.folder, *options)["applied"]
    assert [one["outcome"] for one in answer] == ["failed", "done", "done"]
    assert answer[0]["cause"] == "server-unavailable"
    assert workplace.releases("a") == []

    workplace.run("apply", workplace.folder, "--yes")
    forced = ("--all", "--yes", "--force", "--fleet", workplace.folder / "fleet.yaml")
    ended = unwilling(workplace, {"b": FOR_EVER}, "redeploy", *forced)
    assert [one["outcome"] for one in ended] == ["redeployed", "failed", "not begun"]
    assert ended[1]["cause"] == "server-unavailable"
    serving = workplace.ledger.releases.running(workplace.named("b"))
    assert serving
    assert serving.number == 1
