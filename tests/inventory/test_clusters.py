"""What a spec and a fleet say about Ray clusters."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from moorage.inventory.access import parse_access
from moorage.inventory.clusters import RayCluster
from moorage.inventory.fleet import Fleet
from moorage.reports.problems import problems_of
from tests.builders import a_spec

RAY = {"dashboard": "http://head:8265", "serve": "http://head:8000"}
CUSTOM = {"name": "custom", "application": {"import_path": "shop:build"}}


def on_ray(**changes: Any) -> Any:
    placement = {"cluster": "ray", **changes.pop("placement", {})}
    return a_spec(placement=placement, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"engine": {"name": "vllm", "runtime": "ray", "version": "0.29.0", "args": ["-tp 2"]}},
        {"engine": {"application": {"autoscaling": {"min_replicas": 2, "max_replicas": 2}}}},
        {"engine": CUSTOM},
        {"placement": {"accelerators": 4}, "replicas": 3, "context": 4096, "mode": "embedding"},
        {"secrets": {"HF_TOKEN": "HUB"}},
        {"speculative": {"method": "ngram", "tokens": 3, "ngram_max": 3}},
        {"port": "auto", "engine": {"shm": "10GiB"}},
    ],
    ids=str,
)
def test_what_ray_can_follow_may_be_said(changes: dict[str, Any]) -> None:
    assert on_ray(**changes).placement.cluster == "ray"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"port": 8000}, "port cannot be followed on a Ray cluster"),
        ({"concurrency": 4}, "concurrency cannot"),
        ({"lora": [{"name": "a", "source": "hf://a/b"}]}, "lora cannot"),
        ({"engine": {"image": "a", "packages": ["b"]}}, "engine.image, engine.packages cannot"),
        ({"engine": {"container": {"network": "host"}}}, "engine.container cannot"),
        (
            {"placement": {"policy": "whole", "cores": 2}},
            "placement.policy, placement.cores cannot",
        ),
        (
            {"speculative": {"method": "eagle3", "tokens": 3, "model": "hf://a/b"}},
            "speculative.mod",
        ),
        ({"engine": {"name": "transformers"}}, "serves vllm, or a custom application"),
        ({"engine": {"name": "sglang"}}, "serves vllm, or a custom application"),
        ({"engine": {"runtime": "docker"}}, "on a Ray cluster it is ray"),
        ({"placement": {"accelerators": ["gpu-1:cuda:0"]}}, "say how many"),
        ({"engine": {"name": "custom", "application": {}}}, "needs its `import_path`"),
        ({"engine": {"application": {"import_path": "a:b"}}}, "import_path does not go with vllm"),
        (
            {"engine": {**CUSTOM, "application": {"import_path": "a:b", "accelerator_type": "L4"}}},
            "accelerator_type does not go with custom",
        ),
        ({"engine": {**CUSTOM, "args": ["--a"]}}, "takes `engine.application.args`"),
        ({"engine": CUSTOM, "replicas": 2}, "`num_replicas` in `engine.application.deployments`"),
        (
            {"engine": {"application": {"autoscaling": {"max_replicas": 2}}}, "replicas": 2},
            "leave one of the two out",
        ),
        (
            {"engine": {"application": {"autoscaling": {"min_replicas": 3, "max_replicas": 2}}}},
            "max_replicas: it must not be below",
        ),
        (
            {"engine": {"application": {"runtime_env": {"env_vars": {"A": "b"}}}}},
            "variables belong to `engine.env`",
        ),
        ({"engine": {"application": {"import_path": "a.b"}}}, "pattern"),
        ({"secrets": {"API_KEY": "KEY"}}, "API_KEY would stand in clear text in Ray's dashboard"),
    ],
    ids=str,
)
def test_what_speaks_of_hosts_or_harms_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        on_ray(**changes)


@pytest.mark.parametrize("engine", [{"application": {}}, {"runtime": "ray"}, CUSTOM], ids=str)
def test_what_needs_a_cluster_says_so(engine: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"placement\.cluster"):
        a_spec(engine=engine)


def test_the_way_to_a_dashboard_is_one_line_without_its_secret() -> None:
    cluster = RayCluster.model_validate({**RAY, "dashboard": "http://head:8265/", "token": "RAY"})
    assert cluster.access.url == "http://head:8265?token=RAY"
    assert parse_access(cluster.access.url) == cluster.access
    plain = RayCluster.model_validate(RAY).access
    assert (plain.url, parse_access(plain.url)) == ("http://head:8265", plain)


@pytest.mark.parametrize(
    ("clusters", "why"),
    [
        ({"ray": {"dashboard": "head:8265", "serve": "http://head:8000"}}, "an address such as"),
        ({"ray": {**RAY, "dashboard": "http://user:pass@head:8265"}}, "an address such as"),
        ({"ray": {"dashboard": "http://head:8265"}}, "is required"),
        ({"local": RAY}, "local is the name of a host and of a cluster"),
    ],
    ids=str,
)
def test_a_cluster_that_makes_no_sense_is_refused(clusters: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Fleet.model_validate({"clusters": clusters})
    assert why in str(problems_of(raised.value, Fleet, ""))
