"""prefect.yaml is the one source of what is deployed, for `prefect deploy` and `moorage serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prefect import Flow
from prefect.deployments.runner import RunnerDeployment
from prefect.events.schemas.deployment_triggers import BaseDeploymentTrigger
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from ruamel.yaml import YAML

from moorage.adapters.files.specs import load_spec
from moorage.adapters.prefect.deployment_file import deployments_of
from moorage.adapters.prefect.events import ASKED, DRIFTED, STOPPED_EARLY, TIMED_OUT
from moorage.common.failures import Cause, Failure
from moorage.spec import ModelSpec
from tests.e2e.workplace import REPOSITORY

FILE = REPOSITORY / "prefect.yaml"
WRITTEN: dict[str, Any] = YAML(typ="safe", pure=True).load(FILE)
ENTRIES = {entry["name"]: entry for entry in WRITTEN["deployments"]}


@pytest.fixture(scope="module")
def served() -> dict[str, RunnerDeployment]:
    return {deployment.name: deployment for deployment in deployments_of(FILE)}


def triggers_of(deployment: RunnerDeployment) -> list[BaseDeploymentTrigger]:
    """What starts it by itself; of no other kind than one that starts a deployment."""
    triggers: list[BaseDeploymentTrigger] = []
    for trigger in deployment.triggers:
        assert isinstance(trigger, BaseDeploymentTrigger)
        triggers.append(trigger)
    return triggers


def test_every_flow_is_deployed_once(served: dict[str, RunnerDeployment]) -> None:
    assert [deployment.full_name for deployment in served.values()] == [
        "deploy-by-name/deploy-by-name",
        "deploy-quick/deploy-quick",
        "deploy-model/deploy",
        "plan-model/plan",
        "retire-model/retire",
        "install-engine/install-engine",
        "remove-engine/remove-engine",
        "sleep-model/sleep",
        "wake-model/wake",
        "rollback-model/rollback",
        "apply-models/apply",
        "redeploy-models/redeploy",
        "redeploy-models/watch-drift",
        "notify/notify",
        "load-adapter/load-adapter",
        "unload-adapter/unload-adapter",
        "reconcile-fleet/reconcile",
        "deploy-model/deploy-site-a",
        "retire-model/retire-site-a",
    ]


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_served_is_what_is_written(served: dict[str, RunnerDeployment], name: str) -> None:
    deployment, entry = served[name], ENTRIES[name]
    assert deployment.entrypoint == entry["entrypoint"]
    assert deployment.description == entry["description"]
    assert deployment.tags == entry["tags"]
    assert deployment.enforce_parameter_schema is entry["enforce_parameter_schema"] is True
    assert deployment.concurrency_limit is None, "its lease would cancel runs that wait"
    assert "concurrency_limit" not in entry
    assert len(deployment.schedules or []) == len(entry.get("schedules", []))
    assert [trigger.name for trigger in triggers_of(deployment)] == [
        trigger["name"] for trigger in entry.get("triggers", [])
    ]


@pytest.mark.parametrize("name", ENTRIES)
def test_a_served_deployment_leaves_its_work_pool(
    served: dict[str, RunnerDeployment], name: str
) -> None:
    queue = "site-a" if name.endswith("site-a") else "default"
    assert ENTRIES[name]["work_pool"] == {"name": "moorage", "work_queue_name": queue}
    assert served[name].work_pool_name is None
    assert "work_pool_name" in served[name].model_fields_set


@pytest.mark.parametrize("name", ENTRIES)
def test_parameters_and_schedules_fit_the_flow(
    served: dict[str, RunnerDeployment], name: str
) -> None:
    flow: Flow[..., Any] = load_flow_from_entrypoint(
        ENTRIES[name]["entrypoint"], use_placeholder_flow=False
    )
    for schedule in served[name].schedules or []:
        flow.validate_parameters(schedule.parameters or {})
    assert set(served[name].parameters) <= set(parameter_schema(flow).properties)


def test_the_nightly_example_is_the_spec_of_the_tiny_model(
    served: dict[str, RunnerDeployment],
) -> None:
    (nightly,) = served["deploy"].schedules or []
    assert nightly.slug == "nightly"
    assert nightly.active is False
    spec = ModelSpec.model_validate((nightly.parameters or {})["spec"])
    assert spec == load_spec(REPOSITORY / "deployments" / "tiny-llama.yaml")


def test_reconciling_runs_every_minute(
    served: dict[str, RunnerDeployment],
) -> None:
    [schedule] = served["reconcile"].schedules or []
    assert (schedule.slug, schedule.active) == ("every-minute", True)
    assert ENTRIES["reconcile"]["schedules"][0]["cron"] == "* * * * *"


def test_what_acts_by_itself_is_switched_off_and_what_only_tells_is_on(
    served: dict[str, RunnerDeployment],
) -> None:
    for name in ("redeploy", "watch-drift"):
        assert [schedule.active for schedule in served[name].schedules or []] == [False]
    (died,), (notified,) = triggers_of(served["redeploy"]), triggers_of(served["notify"])
    assert (died.enabled, notified.enabled) == (False, True)
    # The server fills them in: here they must not be taken for ours.
    assert "event.payload.model" in str(died.parameters)
    assert "event.payload.text" in str(notified.parameters)
    [trigger] = ENTRIES["notify"]["triggers"]
    assert {*trigger["expect"]} == {ASKED, TIMED_OUT, DRIFTED, STOPPED_EARLY}


@pytest.mark.parametrize("name", ["deploy", "retire"])
def test_the_deployment_of_a_site_differs_in_its_queue_alone(name: str) -> None:
    own, of_site = dict(ENTRIES[name]), dict(ENTRIES[f"{name}-site-a"])
    for entry in (own, of_site):
        for key in ("name", "description", "work_pool", "schedules"):
            entry.pop(key, None)
    assert of_site == own


def test_no_path_of_a_machine_is_written() -> None:
    assert WRITTEN["pull"] == [
        {"prefect.deployments.steps.set_working_directory": {"directory": "."}}
    ]
    assert str(REPOSITORY) not in FILE.read_text()
    assert all("/" not in entry["entrypoint"] for entry in ENTRIES.values())


PLAN = "name: x, entrypoint: flows.plan_model.plan_model"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            "deployments: [{name: x, entrypoint: flows.there_is_no_such.flow}]",
            "deployment x: No module named 'flows.there_is_no_such'",
        ),
        (
            "deployments: [{name: x, entrypoint: flows.plan_model.there_is_none}]",
            "deployment x: Flow function with name 'there_is_none' not found",
        ),
        ("deployments: [{name: x}]", "deployment x: `entrypoint` is missing"),
        ("deployments: [plan]", "deployment 1: "),
        (f"deploymentz: [{{{PLAN}}}]", "`deployments` is missing"),
        ("deployments: [", "not valid YAML"),
        ("", "`deployments` is missing"),
        (
            f"deployments: [{{{PLAN}, schedules: [{{cron: 99 * * * *}}]}}]",
            'deployment x: Invalid cron string: "99 * * * *"',
        ),
        (
            f"deployments: [{{{PLAN}, schedules: [{{cron: 0 3 * * *, activ: true}}]}}]",
            "unexpected keyword argument 'activ'",
        ),
        (
            f"deployments: [{{{PLAN}, schedules: [{{cron: 0 3 * * *, timezone: Mars/Base}}]}}]",
            'timezone: Invalid timezone: "Mars/Base"',
        ),
        (
            f"deployments: [{{{PLAN}, schedules: [{{cron: 0 3 * * *, parameters: {{sepc: 1}}}}]}}]",
            "deployment x: schedules: unknown parameter sepc; allowed: fleet, spec",
        ),
        (
            f"deployments: [{{{PLAN}, schedules: [{{cron: 0 3 * * *}}]}}]",
            "deployment x: schedules: the parameter spec is missing",
        ),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_deployment(
    tmp_path: Path, text: str, mistake: str
) -> None:
    file = tmp_path / "prefect.yaml"
    file.write_text(text)
    with pytest.raises(Failure) as caught:
        deployments_of(file)
    assert caught.value.cause is Cause.BAD_SETTING
    assert caught.value.detail.startswith(f"{file}: ")
    assert mistake in caught.value.detail


def test_a_schedule_without_a_slug_gets_one_that_stays(tmp_path: Path) -> None:
    file, spec = tmp_path / "prefect.yaml", "parameters: {spec: {name: a, source: hf://a/b}}"
    times = f"[{{cron: 0 3 * * *, {spec}}}, {{cron: 0 4 * * *, slug: late, {spec}}}]"
    file.write_text(f"deployments: [{{{PLAN}, schedules: {times}}}]")
    (deployment,) = deployments_of(file)
    assert [one.slug for one in deployment.schedules or ()] == ["schedule-1", "late"]
