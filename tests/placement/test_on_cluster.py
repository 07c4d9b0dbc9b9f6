from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.placement.on_cluster import propose_on_cluster
from moorage.placement.propose import NoFit
from moorage.spec import Mode
from tests.builders import a_cluster, a_profile, a_spec

CUSTOM = {"name": "custom", "application": {"import_path": "shop:build"}}


def on_ray(engine: dict[str, Any] | None = None, **changes: Any) -> Any:
    placement = {"cluster": "ray", **changes.pop("placement", {})}
    return a_spec(placement=placement, engine=engine or {}, **changes)


def test_ray_chooses_the_nodes_and_nothing_is_claimed() -> None:
    placement = propose_on_cluster(on_ray(replicas=2), a_profile(), a_cluster())
    (seat,) = placement.seats
    assert (placement.engine, placement.engine_origin) == ("vllm", Origin.DERIVED)
    assert (seat.host, seat.runtime, seat.port, seat.place) == ("ray", "ray", 0, "ray")
    assert placement.claims == ()
    assert "2 replicas on nodes that it chooses" in seat.reason
    note = "Ray 2.60.0, 2 nodes: 8 accelerators, 8 of them free, 64 CPUs"
    assert placement.verdicts[0].note == note


def test_a_custom_application_asks_for_what_it_likes() -> None:
    placement = propose_on_cluster(on_ray(CUSTOM), a_profile(), a_cluster(gpus=0, free=None))
    assert (placement.engine, placement.engine_origin) == ("custom", Origin.USER)
    assert placement.seats[0].accelerator_type == "cpu"


@pytest.mark.parametrize(
    ("placement", "args", "sizes"),
    [
        ({}, [], (1, 1)),
        ({"accelerators": 4}, [], (4, 1)),
        ({}, ["-tp 2", "-pp 2"], (2, 2)),
        ({"accelerators": 4}, ["-tp 2", "-pp 2"], (2, 2)),
    ],
)
def test_accelerators_of_a_replica_share_its_layers(
    placement: dict[str, Any], args: list[str], sizes: tuple[int, int]
) -> None:
    spec = on_ray({"args": args}, placement=placement)
    (seat,) = propose_on_cluster(spec, a_profile(), a_cluster()).seats
    assert (seat.tensor, seat.pipeline) == sizes


@pytest.mark.parametrize(
    ("spec", "profile", "why"),
    [
        (on_ray(placement={"accelerators": 3}), {}, "32 attention heads do not go by 3"),
        (on_ray({"args": ["-tp 2"]}, placement={"accelerators": 4}), {}, "4, but engine.args say"),
        (on_ray({"args": ["-dp 2"]}), {}, "serves no replica of data 2"),
        (on_ray({"args": ["-tp 2", "-pcp 2"]}), {}, "of tensor 2 x prefill-context 2"),
        (on_ray(), {"mode": Mode.RERANKING}, "Ray Serve LLM does not serve reranking"),
    ],
)
def test_what_ray_serve_llm_cannot_do_is_refused(
    spec: Any, profile: dict[str, Any], why: str
) -> None:
    with pytest.raises(Failure, match=why) as raised:
        propose_on_cluster(spec, a_profile(**profile), a_cluster())
    assert raised.value.cause == Cause.BAD_SPEC


@pytest.mark.parametrize(
    ("changes", "cluster", "why"),
    [
        ({"replicas": 9}, {}, "9 accelerators needed; .* 8 accelerators"),
        ({"placement": {"accelerators": 2}, "replicas": 5}, {}, "10 accelerators needed"),
        (
            {"engine": {"application": {"autoscaling": {"min_replicas": 9, "max_replicas": 10}}}},
            {},
            "9 accelerators needed",
        ),
        ({}, {"gpus": 0}, "1 accelerator needed; .* 0 accelerators"),
        ({"engine": {"application": {"accelerator_type": "L4"}}}, {}, "no L4 there, but H100"),
    ],
)
def test_what_a_cluster_can_never_give_is_refused_before_anything_starts(
    changes: dict[str, Any], cluster: dict[str, Any], why: str
) -> None:
    with pytest.raises(NoFit, match=why) as raised:
        propose_on_cluster(on_ray(**changes), a_profile(), a_cluster(**cluster))
    assert "clusters.ray.autoscales" in raised.value.suggestion
    grows = a_cluster(**cluster, autoscales=True)
    assert propose_on_cluster(on_ray(**changes), a_profile(), grows).fits


@pytest.mark.parametrize(
    ("changes", "version", "fits"),
    [
        ({}, "2.43.0", False),
        ({}, "2.44.0", True),
        ({}, "3.0.0", True),
        ({"engine": CUSTOM}, "2.39.0", False),
        ({"engine": CUSTOM}, "2.40.0", True),
        ({"placement": {"accelerators": 0}}, "2.59.0", False),
        ({"placement": {"accelerators": 0}}, "2.60.0", True),
    ],
)
def test_an_old_ray_is_told_before_anything_starts(
    changes: dict[str, Any], version: str, fits: bool
) -> None:
    cluster = a_cluster(version=version)
    if fits:
        assert propose_on_cluster(on_ray(**changes), a_profile(), cluster).fits
        return
    with pytest.raises(Failure, match=f"ray runs Ray {version}") as raised:
        propose_on_cluster(on_ray(**changes), a_profile(), cluster)
    assert raised.value.cause == Cause.CLUSTER_UNSUITABLE


@pytest.mark.parametrize(
    ("cluster", "stops"),
    [
        ({}, True),
        ({"applications": ()}, False),
        ({"free": {"GPU": 1.0}}, False),
        ({"free": None}, False),
        ({"autoscales": True}, False),
    ],
)
def test_the_running_release_stops_first_only_where_its_accelerators_are_needed(
    cluster: dict[str, Any], stops: bool
) -> None:
    full = {"gpus": 1, "free": {"GPU": 0.0}, "applications": ("moorage-tiny.v1",)}
    there = a_cluster(**{**full, **cluster})
    placement = propose_on_cluster(on_ray(), a_profile(), there, running="tiny.v1")
    assert placement.stop_first.startswith("tiny.v1 stops first") is stops
