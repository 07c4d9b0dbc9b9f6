"""What nobody gets through the API of a real server, and what the command line may all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.policy.request import Channel, Submission
from moorage.releases.release_row import ReleaseRow
from tests.e2e.conftest import lifecycle_program, process_engine
from tests.e2e.workplace import Workplace
from tests.flows.conftest import Serving, own_workplace
from tests.policies import written_policy
from tests.prefect_server import PrefectServer
from tests.waiting import until

__all__ = ["lifecycle_program"]

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("deployed", "nothing_served")]
workplace = own_workplace

Guarded = tuple[PrefectServer, Workplace]

FLEET = {"hosts": [{"name": "local", "ports": "30000-30009"}]}
HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "entrypoint": ("commands", {"engine": {"name": "vllm", "entrypoint": ["/bin/sh"]}}),
    "privileged": ("privileged", {"engine": {"container": {"privileged": True}}}),
    "network": ("host_network", {"engine": {"container": {"network": "host"}}}),
    "code": ("trust_remote_code", {"trust_remote_code": True}),
    "folder": ("file_roots", {"source": "file:///opt/model"}),
    "adapter": ("file_roots", {"lora": [{"name": "a", "source": "file:///opt/adapter"}]}),
    "image": ("registries", {"engine": {"name": "vllm", "image": "evil.example.com/x"}}),
    "preload": ("env", {"engine": {"env": {"LD_PRELOAD": "/tmp/x.so"}}}),
    "middleware": ("args", {"engine": {"name": "vllm", "args": ["--middlew", "evil.x"]}}),
    "variable": ("variables", {"secrets": {"HF_TOKEN": "HOME"}}),
    "packages": ("packages", {"engine": {"name": "vllm", "packages": ["evil"]}}),
}
OWN = {"job_variables": {"env": {"MOORAGE_POLICY": "/tmp/evil.yaml"}}}


@pytest.fixture(scope="module")
def guarded(workplace: Workplace, prefect_server: PrefectServer) -> Iterator[Guarded]:
    """The server, with `moorage serve` next to it; the policy names a fleet and a folder alone."""
    folder = workplace.folder / "deployments"
    own = f"fleet: {workplace.folder}/fleet.yaml\napi: {{spec_folders: [{folder}]}}\n"
    written_policy(folder / "policy.yaml", own)
    del workplace.environment["MOORAGE_POLICY"]
    with Serving(workplace):
        yield prefect_server, workplace


def test_nothing_that_would_run_or_read_something_comes_through_the_api(guarded: Guarded) -> None:
    api, place = guarded
    touched = place.folder / "touched"
    plain = {"name": place.named("plain"), "source": "hf://there/is-none"}
    shell = {"name": "custom", "runtime": "process", "command": ["/bin/sh", "-c", f"> {touched}"]}
    evil = {**plain, "engine": shell}
    specs = [{**plain, "name": place.named(name), **HOSTILE[name][1]} for name in HOSTILE]
    adapter = {"model": "x", "adapter": {"name": "a", "source": "file:///opt/a"}}
    foreign = {"spec": evil, "fleet": FLEET}
    bodies: list[tuple[str, set[str], dict[str, Any], dict[str, Any]]] = [
        ("apply-models/apply", set(), {"specs": specs, "at_once": 2}, {}),
        ("deploy-model/deploy", {"api.commands", "api.own_fleet"}, foreign, {"tags": ["cli"]}),
        (
            "redeploy-models/redeploy",
            {"api.spec_folders", "api.own_fleet"},
            {"files": "/etc", "fleet": FLEET},
            {},
        ),
        ("load-adapter/load-adapter", {"api.file_roots"}, adapter, {}),
        ("plan-model/plan", {"job_variables: found env.MOORAGE_POLICY"}, {"spec": plain}, OWN),
    ]
    runs = [api.ask(name, parameters, **more).json() for name, _, parameters, more in bodies]
    for run, (name, rules, _, _) in zip(runs, bodies, strict=True):
        state = api.ended(run["id"])["state"]
        assert state["type"] == "FAILED", name
        assert {rule for rule in rules if rule not in state["message"]} == set(), name
    refusals = [f"{place.named(name)}: The site's policy does not allow this" for name in HOSTILE]
    file = f"{place.folder}/deployments/policy.yaml"
    refusals += [f"`api.{rule}` of {file}" for rule, _ in HOSTILE.values()]
    # The log arrives a moment after the run has ended.
    until(lambda: not [text for text in refusals if text not in api.log(runs[0]["id"])])
    assert not any(place.releases(name) for name in (*HOSTILE, "plain"))
    assert not touched.exists()
    assert place.is_clean()


@pytest.mark.process
def test_what_the_command_line_brought_is_redeployed_through_the_api(
    guarded: Guarded, lifecycle_program: Path
) -> None:
    api, place = guarded
    place.run("apply", place.spec("own", engine=process_engine(lifecycle_program)), "--yes")
    again = api.run("redeploy-models/redeploy", {"names": [place.named("own")], "force": True})
    assert again["state"]["type"] == "COMPLETED", again["state"]["message"]
    after, before = place.releases("own")
    assert submission_of(after) == submission_of(before)
    assert submission_of(after).channel is Channel.CLI
    place.run("retire", place.named("own"))


BY_NAME, QUICK = "deploy-by-name/deploy-by-name", "deploy-quick/deploy-quick"


@pytest.mark.process
def test_a_file_of_the_site_is_deployed_by_its_name_as_it_is_written(
    guarded: Guarded, lifecycle_program: Path
) -> None:
    api, place = guarded
    file = place.spec("filed", engine=process_engine(lifecycle_program))
    until(lambda: api.has_deployment(BY_NAME) and "enum" not in form_of(api))
    file.rename(place.folder / "deployments" / file.name)
    until(lambda: form_of(api).get("enum") == ["filed"])
    for foreign in ("../filed", "policy", "tiny"):
        assert api.ask(BY_NAME, {"spec": foreign}).status_code == 409, "the form does not offer it"

    run = api.run(BY_NAME, {"spec": "filed", "reason": "change 4711"})
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    [row] = place.releases("filed")
    assert submission_of(row).channel is Channel.CLI
    assert row.release
    assert "change 4711" in str(row.release.requester)

    # What a caller changes in it is the caller's, and a command is the site's alone.
    changed = api.run(BY_NAME, {"spec": "filed", "replicas": 2})["state"]
    assert (changed["type"], "api.commands" in changed["message"]) == ("FAILED", True)
    assert len(place.releases("filed")) == 1
    place.run("retire", place.named("filed"))


def form_of(api: PrefectServer) -> dict[str, Any]:
    """What the form of a deploy by name says of the file."""
    schema = api.deployment(BY_NAME)["parameter_openapi_schema"]
    field: dict[str, Any] = schema["properties"]["spec"]
    return field


def test_a_short_form_is_judged_as_the_long_one(guarded: Guarded) -> None:
    api, place = guarded
    until(lambda: api.has_deployment(QUICK))
    parameters = {"name": place.named("quick"), "source": "file:///opt/model"}
    refused = api.run(QUICK, parameters)["state"]
    assert "api.file_roots" in refused["message"]
    wrong = api.run(QUICK, {**parameters, "keep_alive": "soon"})["state"]
    assert wrong["message"].startswith("The model spec is not valid: keep_alive: found 'soon'")
    assert f"failure-{parameters['name']}" in api.artifacts(wrong["state_details"]["flow_run_id"])
    assert place.releases("quick") == []


def submission_of(row: ReleaseRow) -> Submission:
    assert row.release
    return row.release.submission


def test_what_is_served_is_the_code_of_moorage_whatever_the_api_makes_of_a_deployment(
    guarded: Guarded,
) -> None:
    api, place = guarded
    touched, evil = place.folder / "loaded", place.folder / "evil.py"
    evil.write_text(
        f"from pathlib import Path\nfrom prefect import flow\nPath({str(touched)!r}).touch()\n"
        "@flow(name='notify')\ndef notify(subject: str, body: str, block: str = ''): ...\n"
    )
    # The last one that is registered; from then on the server's are left as they are.
    until(lambda: api.deployment("retire-model/retire-site-a")["work_pool_name"] is None)
    before = api.deployment("notify/notify")
    path = f"/deployments/{before['id']}"
    api.patch(path, {"entrypoint": f"{evil}:notify", "path": str(place.folder)})
    try:
        run = api.run("notify/notify", {"subject": "x", "body": "y"})
    finally:
        api.patch(path, {name: before[name] for name in ("entrypoint", "path")})
    assert run["state"]["message"] == "x: y"
    assert not touched.exists()
