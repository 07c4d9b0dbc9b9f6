"""A Ray cluster in place of hosts: a real Ray that wants a token, and others' applications."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from moorage.adapters.ray.cluster_survey import check_clusters, survey_cluster
from moorage.common.failures import Cause, Failure
from moorage.engines.ray_serve import MARK_RELEASE
from moorage.inventory.clusters import RayCluster as RayClusterEntry
from moorage.inventory.fleet import Fleet
from moorage.releases.states import SERVING
from tests.e2e.workplace import Workplace
from tests.openai_client import openai_client
from tests.ray_cluster import RayCluster, ray_program

pytestmark = [pytest.mark.process, pytest.mark.server]

BYSTANDER: dict[str, Any] = {
    "name": "bystander",
    "route_prefix": "/bystander",
    "import_path": "small_models:bystander",
    "args": {"word": "still here"},
    "runtime_env": {"env_vars": {"KEPT": "as it was"}},
}

ARCHITECTURE = "LlamaForCausalLM"
"""What the application answers: it has read it in the model's folder."""

TOKEN = "a-token-of-more-than-thirty-two-letters"
TOKEN_VARIABLE = "CLUSTER_TOKEN"
"""Does not begin as Ray's own, which are read while modules are imported (`fork_server.EARLY`)."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """With one accelerator that it only claims to have, and nothing to serve."""
    if ray_program() is None:
        pytest.skip("Ray is not installed in this environment")
    running = RayCluster(gpus=1, token=TOKEN)
    try:
        running.start()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def in_use(cluster: RayCluster) -> RayCluster:
    """With one application of somebody else."""
    cluster.put(BYSTANDER, target_capacity=100)
    return cluster


@pytest.fixture
def at_ray(workplace: Workplace, in_use: RayCluster) -> Workplace:
    """A workplace whose fleet names the cluster."""
    fleet, clusters = workplace.folder / "fleet.yaml", {"ray": in_use.fleet(token=TOKEN_VARIABLE)}
    fleet.write_text(f"{fleet.read_text()}clusters: {json.dumps(clusters)}\n")
    workplace.environment[TOKEN_VARIABLE] = TOKEN
    return workplace


def entry(cluster: RayCluster, **more: str) -> RayClusterEntry:
    return RayClusterEntry.model_validate(cluster.fleet(**more))


def small(**args: Any) -> dict[str, Any]:
    """Engine and placement of the small model."""
    given = {"path": "{{model_path}}", "name": "{{model_name}}", **args}
    application = {"import_path": "small_models:model", "args": given}
    return {
        "engine": {"name": "custom", "application": application},
        "placement": {"cluster": "ray"},
    }


def output(endpoint: str, name: str) -> str | None:
    client = openai_client(endpoint)
    messages: Any = [{"role": "user", "content": "hello"}]
    answer = client.chat.completions.create(model=name, messages=messages, max_tokens=4)
    return answer.choices[0].message.content


def bystander(cluster: RayCluster) -> Any:
    return httpx.get(f"{cluster.serve}/bystander", timeout=30).raise_for_status().json()


def test_with_its_token_a_cluster_is_surveyed(
    cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    seen = survey_cluster("ray", entry(cluster, token=TOKEN_VARIABLE))
    assert (seen.nodes, seen.accelerators, seen.applications) == (1, 1, ())
    assert seen.version.startswith("2.")
    assert seen.accelerators_free in (None, 1)
    assert TOKEN not in seen.model_dump_json()


def test_without_it_the_refusal_names_the_field(cluster: RayCluster) -> None:
    with pytest.raises(Failure) as raised:
        survey_cluster("ray", entry(cluster))
    assert raised.value.cause == Cause.HOST_UNAUTHORIZED
    assert "`token`" in raised.value.suggestion


def test_serve_is_silent_until_it_has_something_to_serve(
    cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    fleet = Fleet(clusters={"ray": entry(cluster, token=TOKEN_VARIABLE)})
    (checked,) = check_clusters(fleet)
    dashboard, serve = checked.checks
    assert checked.well
    assert "1 accelerator" in dashboard.found
    assert (serve.state, serve.name) == ("absent", "serve")


def test_a_model_is_deployed_answers_is_replaced_and_retired_and_the_others_stay(
    at_ray: Workplace, cluster: RayCluster
) -> None:
    before, theirs = bystander(cluster), cluster.config("bystander")
    name = at_ray.named("tiny")

    planned = at_ray.json("plan", at_ray.spec(**small()))
    assert cluster.statuses() == {"bystander": "RUNNING"}
    first = at_ray.json("deploy", at_ray.spec(**small()))["release"]
    assert first["plan"] == planned["plan"]
    (container,), (workload,) = first["plan"]["containers"], first["workloads"]
    assert (workload["runtime"], workload["host"]) == ("ray", "ray")
    assert workload["endpoint"] == f"{cluster.serve}/{name}.v1"
    assert cluster.config(f"moorage-{name}.v1") == container["application"]["config"]
    assert [probe["phase"] for probe in first["readiness"][0]["probes"]] == [
        "deployed",
        "listening",
        "answered",
    ]
    assert output(workload["endpoint"], name) == ARCHITECTURE
    assert at_ray.claims() == ()
    assert "nothing is claimed there" in first["placement"]["seats"][0]["reason"]
    assert "nothing is claimed there" in at_ray.run("show", name).stdout

    assert at_ray.json("deploy", at_ray.spec(**small()))["outcome"] == "unchanged"

    # A request that is in flight while the release is replaced ends as if nothing had happened.
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(
            httpx.get, f"{workload['endpoint']}/slow", params={"seconds": 20}, timeout=120
        )
        changed = at_ray.spec(**small(), stopping={"drain_seconds": 5})
        second = at_ray.json("deploy", changed)["release"]
        assert slow.result().json() == name
    assert second["replaced"] == first["id"]
    assert output(second["workloads"][0]["endpoint"], name) == ARCHITECTURE
    assert set(cluster.statuses()) == {"bystander", f"moorage-{name}.v2"}
    assert [row.state for row in at_ray.releases()] == ["running", "superseded"]

    at_ray.run("retire", name)
    assert cluster.statuses() == {"bystander": "RUNNING"}
    assert cluster.config("bystander") == theirs
    assert bystander(cluster) == before
    assert cluster.details()["target_capacity"] == 100
    assert at_ray.is_clean()


def test_a_constructor_that_raises_is_the_cause_and_the_old_release_serves_on(
    at_ray: Workplace, cluster: RayCluster
) -> None:
    name = at_ray.named("tiny")
    first = at_ray.json("deploy", at_ray.spec(**small()))["release"]
    failed = at_ray.json("deploy", at_ray.spec(**small(broken="the weights are cursed")), code=6)
    assert failed["error"]["cause"] == "engine-exited"
    assert "DEPLOY_FAILED" in failed["error"]["detail"]
    assert "ValueError: the weights are cursed" in failed["error"]["detail"]
    assert "in __init__" in failed["error"]["log_tail"]
    assert "\x1b" not in failed["error"]["log_tail"]
    assert set(cluster.statuses()) == {"bystander", f"moorage-{name}.v1"}
    assert output(first["workloads"][0]["endpoint"], name) == ARCHITECTURE
    at_ray.run("retire", name)


def test_vllm_goes_to_ray_serve_llm_and_what_is_missing_there_is_told(
    at_ray: Workplace, cluster: RayCluster
) -> None:
    """The cluster of these tests has no vLLM: the build of the application fails in Ray's words."""
    spec = at_ray.spec(placement={"cluster": "ray"}, engine={"args": ["--max-num-seqs 4"]})
    failed = at_ray.json("deploy", spec, code=8)
    (row,) = at_ray.releases()
    assert row.release
    assert row.release.plan
    (container,) = row.release.plan.containers
    assert container.application
    assert container.application.config["import_path"] == "ray.serve.llm:build_openai_app"
    (config,) = container.application.config["args"]["llm_configs"]
    assert config["engine_kwargs"]["max_num_seqs"] == 4
    assert failed["error"]["cause"] == "program-missing"
    assert "ray[serve,llm]" in failed["error"]["suggestion"]
    assert cluster.statuses() == {"bystander": "RUNNING"}


def test_accelerators_that_the_cluster_lacks_are_no_reason_to_start_anything(
    at_ray: Workplace, cluster: RayCluster
) -> None:
    spec = at_ray.spec(placement={"cluster": "ray", "accelerators": 2})
    refused = at_ray.json("deploy", spec, code=3)
    assert refused["error"]["cause"] == "no-fit"
    assert "2 accelerators needed" in refused["error"]["detail"]
    assert cluster.statuses() == {"bystander": "RUNNING"}


def test_an_application_of_the_same_name_that_is_not_ours_is_left_alone(
    at_ray: Workplace, cluster: RayCluster
) -> None:
    theirs = {**BYSTANDER, "name": f"moorage-{at_ray.named('tiny')}.v1", "route_prefix": "/other"}
    cluster.put(BYSTANDER, theirs, target_capacity=100)
    try:
        refused = at_ray.json("deploy", at_ray.spec(**small()), code=6)
        assert "this ledger does not know" in refused["error"]["detail"]
        assert cluster.statuses()[theirs["name"]] == "RUNNING"
        assert MARK_RELEASE not in str(cluster.config(theirs["name"]))
    finally:
        cluster.put(BYSTANDER, target_capacity=100)


def test_a_cluster_that_dies_is_told_as_that(at_ray: Workplace, cluster: RayCluster) -> None:
    """The last test of this file."""
    at_ray.run("deploy", at_ray.spec(**small()))
    cluster.kill()
    failed = at_ray.json("deploy", at_ray.spec(**small(), context=64), code=8)
    assert failed["error"]["cause"] == "cluster-unavailable"
    assert cluster.dashboard in failed["error"]["detail"]
    (row,) = [row for row in at_ray.releases() if row.state in SERVING]
    assert row.id.endswith(".v1")
    assert at_ray.run("retire", at_ray.named("tiny"), code=8)
