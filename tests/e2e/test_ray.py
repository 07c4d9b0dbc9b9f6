"""A Ray cluster in place of hosts: a real Ray, a small model on CPU, others' applications."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from moorage.engines.ray_serve import MARK_RELEASE
from moorage.releases.states import SERVING
from tests.e2e.workplace import Workplace
from tests.ray_cluster import RayCluster, ray_program

pytestmark = [pytest.mark.process, pytest.mark.server]

BYSTANDER: dict[str, Any] = {
    "name": "bystander",
    "route_prefix": "/bystander",
    "import_path": "small_models:bystander",
    "args": {"word": "still here"},
    "runtime_env": {"env_vars": {"KEPT": "as it was"}},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """With one application of somebody else, and one accelerator that it only claims to have."""
    if ray_program() is None:
        pytest.skip("Ray is not installed in this environment")
    running = RayCluster(gpus=1)
    try:
        running.start()
        running.put(BYSTANDER, target_capacity=100)
        yield running
    finally:
        running.close()


@pytest.fixture
def at_ray(workplace: Workplace, cluster: RayCluster) -> Workplace:
    """A workplace whose fleet names the cluster."""
    name_it(workplace, cluster)
    return workplace


def name_it(workplace: Workplace, cluster: RayCluster, **more: object) -> None:
    fleet = workplace.folder / "fleet.yaml"
    entry = ", ".join(f"{key}: '{value}'" for key, value in cluster.fleet(**more).items())
    fleet.write_text(f"{fleet.read_text()}clusters: {{ray: {{{entry}}}}}\n")


def small(**args: Any) -> dict[str, Any]:
    """Engine and placement of the small model."""
    given = {"path": "{{model_path}}", "name": "{{model_name}}", **args}
    application = {"import_path": "small_models:model", "args": given}
    return {
        "engine": {"name": "custom", "application": application},
        "placement": {"cluster": "ray"},
    }


def output(endpoint: str, name: str) -> str | None:
    client = openai.OpenAI(base_url=f"{endpoint}/v1", api_key="none", max_retries=0)
    messages: Any = [{"role": "user", "content": "hello"}]
    answer = client.chat.completions.create(model=name, messages=messages, max_tokens=4)
    return answer.choices[0].message.content


def bystander(cluster: RayCluster) -> Any:
    return httpx.get(f"{cluster.serve}/bystander", timeout=30).raise_for_status().json()


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
    assert output(workload["endpoint"], name)
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
    assert output(second["workloads"][0]["endpoint"], name)
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
    assert output(first["workloads"][0]["endpoint"], name)
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


def test_a_cluster_that_dies_is_told_as_that(workplace: Workplace) -> None:
    if ray_program() is None:
        pytest.skip("Ray is not installed in this environment")
    dying = RayCluster()
    try:
        dying.start()
        dying.put()
        name_it(workplace, dying)
        workplace.run("deploy", workplace.spec(**small()))
        dying.kill()
        failed = workplace.json("deploy", workplace.spec(**small(), context=64), code=8)
        assert failed["error"]["cause"] == "cluster-unavailable"
        assert dying.dashboard in failed["error"]["detail"]
        (row,) = [row for row in workplace.releases() if row.state in SERVING]
        assert row.id.endswith(".v1")
        assert workplace.run("retire", workplace.named("tiny"), code=8)
    finally:
        dying.close()
