from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines.schema_store import SchemaStore
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.application import ApplicationRequest
from moorage.engines.launch import LaunchPlan
from moorage.engines.plan import CLUSTER_CAUSES, plan_on_cluster
from moorage.placement.on_cluster import propose_on_cluster
from moorage.readiness.diagnosis import diagnose
from moorage.spec import Mode
from tests.builders import LEDGER, REVISION, a_cluster, a_model, a_profile, a_spec

SCHEMA = SchemaStore(Path("/nowhere")).of_version("0.32.0")


def planned(
    engine: dict[str, Any] | None = None,
    placement: dict[str, Any] | None = None,
    source: str = "hf://org/tiny",
    profile: dict[str, Any] | None = None,
    serve: str = "http://head:8000",
    **spec: Any,
) -> LaunchPlan:
    wanted = a_spec(
        source=source,
        engine=engine or {},
        placement={"cluster": "ray", **(placement or {})},
        **spec,
    )
    what, cluster = a_profile(**(profile or {})), a_cluster(serve=serve)
    where = propose_on_cluster(wanted, what, cluster)
    assert SCHEMA
    request = ApplicationRequest(
        spec=wanted,
        profile=what,
        model=a_model(source=source, path=source.removeprefix("file://")),
        seat=where.seats[0],
        cluster=cluster,
        release="tiny.v1",
        ledger=LEDGER,
        arguments=SCHEMA,
    )
    return plan_on_cluster(request, where.engine)


def config_of(plan: LaunchPlan) -> dict[str, Any]:
    (container,) = plan.containers
    assert container.application
    return container.application.config


def llm(plan: LaunchPlan) -> dict[str, Any]:
    (config,) = config_of(plan)["args"]["llm_configs"]
    return dict(config)


PLANS: dict[str, dict[str, Any]] = {
    "ray_vllm": {
        "engine": {
            "version": "0.32.0",
            "args": ["--max-num-seqs 64", "--enable-prefix-caching"],
            "env": {"VLLM_LOGGING_LEVEL": "DEBUG"},
            "application": {
                "accelerator_type": "H100",
                "autoscaling": {"min_replicas": 1, "max_replicas": 4},
            },
        },
        "placement": {"accelerators": 2},
        "speculative": {"method": "ngram", "tokens": 4, "ngram_max": 3},
        "trust_remote_code": True,
    },
    "ray_custom": {
        "engine": {
            "name": "custom",
            "application": {
                "import_path": "shop.models:build",
                "args": {"path": "{{model_path}}", "names": ["{{model_name}}"], "depth": 2},
                "deployments": [{"name": "Server", "num_replicas": 2}],
                "runtime_env": {"pip": ["shop==1.2"]},
            },
        },
        "source": "file:///shared/tiny",
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_is_what_will_be_put(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"plans/{name}.json", planned(**PLANS[name]).model_dump_json(indent=2) + "\n")


def test_each_release_has_a_name_and_a_route_of_its_own() -> None:
    (container,) = planned().containers
    config = config_of(planned())
    assert config["name"] == container.name == "moorage-tiny.v1"
    assert config["route_prefix"] == "/tiny.v1"
    assert container.endpoint == "http://head:8000/tiny.v1"
    marks = {"MOORAGE_LEDGER": LEDGER, "MOORAGE_RELEASE": "tiny.v1"}
    assert marks.items() <= config["runtime_env"]["env_vars"].items()


def test_the_nodes_download_the_commit_that_was_resolved() -> None:
    found = llm(planned())
    assert found["model_loading_config"] == {"model_id": "tiny", "model_source": "org/tiny"}
    assert found["engine_kwargs"]["revision"] == REVISION


def test_a_directory_has_to_be_on_the_nodes() -> None:
    plan = planned(source="file:///shared/tiny")
    assert llm(plan)["model_loading_config"]["model_source"] == "/shared/tiny"
    assert "revision" not in llm(plan)["engine_kwargs"]
    assert "/shared/tiny has to be on every node of ray; nothing is copied" in plan.warnings


def test_the_users_arguments_win_and_every_flag_has_a_reason() -> None:
    plan = planned({"args": ["--max-model-len 4k", "--no-enable-prefix-caching"]})
    kwargs = llm(plan)["engine_kwargs"]
    assert (kwargs["max_model_len"], kwargs["enable_prefix_caching"]) == (4000, False)
    flags = plan.containers[0].command
    assert all(flag.reason for flag in flags)
    assert [flag.origin for flag in flags] == [Origin.DERIVED, Origin.USER]


def test_keys_of_the_llm_config_win_too() -> None:
    own = {"args": {"placement_group_config": {"bundles": [{"GPU": 1}]}}}
    found = llm(planned({"application": own}))
    assert found["placement_group_config"] == {"bundles": [{"GPU": 1}]}


def test_without_accelerators_ray_is_told_to_serve_on_cpu() -> None:
    found = llm(planned(placement={"accelerators": 0}))
    assert found["accelerator_config"] == {"kind": "cpu"}
    assert "accelerator_config" not in llm(planned())


def test_an_embedding_model_pools() -> None:
    kwargs = llm(planned(profile={"mode": Mode.EMBEDDING}))["engine_kwargs"]
    assert kwargs["runner"] == "pooling"


def test_requests_in_flight_may_end_when_a_release_does() -> None:
    deployment = llm(planned(stopping={"drain_seconds": 7}, replicas=3))["deployment_config"]
    assert deployment == {"num_replicas": 3, "graceful_shutdown_timeout_s": 7}


def test_the_hubs_token_never_leaves_and_that_is_said() -> None:
    plan = planned(secrets={"HF_TOKEN": "HUB"})
    assert "HUB" not in str(config_of(plan))
    assert any("HF_TOKEN is used here only" in warning for warning in plan.warnings)


def test_a_version_that_nobody_knows_is_told() -> None:
    warnings = planned().warnings
    assert any("arguments are written as for vLLM 0.32.0" in warning for warning in warnings)
    warnings = planned({"version": "0.32.0"}).warnings
    assert not any("arguments are written" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("serve", "count"),
    [("http://head:8000", 1), ("http://10.0.0.7:8000", 1), ("http://localhost:8000", 0)],
)
def test_an_application_that_answers_everybody_is_told(serve: str, count: int) -> None:
    warnings = planned({"version": "0.32.0"}, serve=serve).warnings
    assert sum("knows no key" in warning for warning in warnings) == count


def test_a_package_that_the_cluster_lacks_is_named() -> None:
    failure = diagnose(
        "ModuleNotFoundError: No module named 'vllm'", CLUSTER_CAUSES, Cause.ENGINE_EXITED, "died"
    )
    assert failure.cause == Cause.PROGRAM_MISSING
    assert failure.suggestion.startswith("vllm is not in the Python of the cluster's nodes")


def test_an_argument_that_is_none_is_refused() -> None:
    with pytest.raises(Failure, match="--max-num-seqs: 'many' is not a whole number"):
        planned({"args": ["--max-num-seqs many"]})
