"""Approval on a real server: a run waits, a person answers, automations hear of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from moorage.adapters.system.process import command_line_user
from tests.e2e.conftest import lifecycle_program, process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer
from tests.waiting import until

__all__ = ["lifecycle_program"]

pytestmark = [pytest.mark.server, pytest.mark.process]


@pytest.fixture
def deploy(
    served: PrefectServer, workplace: Workplace, lifecycle_program: Path
) -> Callable[..., dict[str, Any]]:
    """Asks for the deploy of a model that needs approval."""
    fleet = YAML(typ="safe").load(workplace.folder / "fleet.yaml")

    def ask(name: str, seconds: int = 300, **changes: Any) -> dict[str, Any]:
        spec = {
            "name": workplace.named(name),
            "source": f"file://{workplace.model}",
            "engine": process_engine(lifecycle_program),
            "redeploy": {"approval": "required", "approval_seconds": seconds},
            **changes,
        }
        created = served.ask("deploy-model/deploy", {"spec": spec, "fleet": fleet})
        assert created.status_code == 201, created.text
        return dict(created.json())

    return ask


def test_a_deploy_waits_for_a_person_and_shows_its_plan(
    served: PrefectServer, workplace: Workplace, deploy: Callable[..., dict[str, Any]]
) -> None:
    run = deploy("agreed")
    name = workplace.named("agreed")
    (waiting,) = waiting_runs(served, workplace, run)
    assert (waiting["id"], waiting["model"]) == (run["id"], name)
    assert f"{name}.v1" in waiting["plan"]
    assert "--served-model-name" in waiting["plan"], "the plan is the exact command line"
    assert "\n\n## Placement\n\n" in waiting["plan"], "it is Markdown for a person"
    assert workplace.releases("agreed") == [], "nothing is claimed while a person thinks"
    listed = workplace.run("approvals").stdout
    assert run["id"][:8] in listed
    assert "Prefect's API" in listed, "who wants it"

    workplace.run("approve", name, "--note", "go on")
    done = served.ended(run["id"])
    assert done["state"]["type"] == "COMPLETED", done["state"]["message"]
    answered = f"approved: go on ({command_line_user().account})"
    until(lambda: answered in served.log(run["id"]))
    assert workplace.json("show", name)["approval"] == answered.removeprefix("approved: ")
    assert workplace.json("approvals") == []

    again = deploy("agreed")
    assert served.ended(again["id"])["state"]["name"] == "Unchanged", (
        "no approval of an unchanged model"
    )
    redeployed = redeploy(served, workplace, names=[name], force=True)
    (waiting,) = waiting_runs(served, workplace, redeployed)
    assert "Prefect's API" in waiting["requested_by"]
    workplace.run("approve", name)  # as its log advises
    assert served.ended(redeployed["id"])["state"]["message"] == "1 redeployed"
    assert [row.number for row in workplace.releases("agreed")] == [2, 1]
    approval = f"by {command_line_user().account}"
    assert workplace.json("show", name)["approval"] == approval, "given for the redeploy of many"


def test_an_empty_answer_is_none_and_a_refusal_ends_the_run(
    served: PrefectServer, workplace: Workplace, deploy: Callable[..., dict[str, Any]]
) -> None:
    run = deploy("refused")
    waiting_runs(served, workplace, run)
    empty = served.post(f"/flow_runs/{run['id']}/resume", {"run_input": {}})
    assert empty["status"] != "ACCEPT"
    assert served.get(f"/flow_runs/{run['id']}")["state"]["type"] == "PAUSED"
    workplace.run("approve", run["id"][:8], "--refuse", "--note", "not on a Friday")
    done = served.ended(run["id"])
    assert done["state"]["type"] == "FAILED"
    assert "not on a Friday" in done["state"]["message"]
    assert workplace.releases("refused") == []
    missing = workplace.json("approve", run["id"], code=2)["error"]
    assert missing["cause"] == "unknown-approval"


def test_no_answer_means_no_and_somebody_is_told(
    served: PrefectServer, workplace: Workplace, deploy: Callable[..., dict[str, Any]]
) -> None:
    run = deploy("late", seconds=4)
    done = served.ended(run["id"])
    assert done["state"]["type"] == "FAILED"
    assert "nobody agreed within 4 s" in done["state"]["message"]
    assert workplace.json("approvals") == []

    def notices() -> list[dict[str, Any]]:
        name = {"name": {"any_": ["notify: moorage.approval.timed-out"]}}
        runs: list[dict[str, Any]] = served.post("/flow_runs/filter", {"flow_runs": name})
        return [one for one in runs if workplace.named("late") in one["parameters"]["body"]]

    (notice,) = until(notices)
    assert served.ended(notice["id"])["state"]["type"] == "COMPLETED"


def test_who_watches_asks_once_and_the_next_run_is_skipped_meanwhile(
    served: PrefectServer, workplace: Workplace, deploy: Callable[..., dict[str, Any]]
) -> None:
    run = deploy("watched")
    name = workplace.named("watched")
    waiting_runs(served, workplace, run)
    workplace.run("approve", name)
    assert served.ended(run["id"])["state"]["type"] == "COMPLETED"

    watches = {"names": [name], "by_policy": True, "force": True}
    asks = redeploy(served, workplace, **watches)
    waiting_runs(served, workplace, asks)
    again = served.ended(redeploy(served, workplace, **watches)["id"])
    assert (again["state"]["type"], again["state"]["name"]) == ("COMPLETED", "Skipped")
    assert asks["id"] in again["state"]["message"]
    workplace.run("approve", name, "--refuse")
    assert served.ended(asks["id"])["state"]["type"] == "FAILED"


def test_who_is_killed_while_it_waits_gets_no_answer_and_is_ended(
    served: PrefectServer, workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    spec = workplace.spec("killed", engine=engine, redeploy={"approval": "required"})
    with workplace.spawn("deploy", spec, "--fleet", workplace.folder / "fleet.yaml") as command:
        (waiting,) = until(lambda: workplace.json("approvals"))
        command.kill()
    refused = workplace.json("approve", waiting["id"], code=2)["error"]
    assert refused["cause"] == "unknown-approval"
    workplace.run("reconcile", "--fleet", workplace.folder / "fleet.yaml")
    ended = served.ended(waiting["id"])["state"]
    assert (ended["type"], "its process is gone" in ended["message"]) == ("CRASHED", True)


def waiting_runs(
    served: PrefectServer, workplace: Workplace, run: dict[str, Any]
) -> list[dict[str, Any]]:
    """What waits for a person once a run does: its form and its plan come a moment later."""
    served.until(run["id"], {"PAUSED"})
    found: list[dict[str, Any]] = until(lambda: workplace.json("approvals"))
    return found


def redeploy(served: PrefectServer, workplace: Workplace, **parameters: Any) -> dict[str, Any]:
    """Ask for a redeployment."""
    fleet = YAML(typ="safe").load(workplace.folder / "fleet.yaml")
    created = served.ask("redeploy-models/redeploy", {"fleet": fleet, **parameters})
    assert created.status_code == 201, created.text
    return dict(created.json())
