from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from moorage.adapters.gateway.config_files import scripts_code
from moorage.gateway.clusters import DOORMAN, clusters
from moorage.gateway.envoy import bootstrap, listeners
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.routes import route_table
from moorage.gateway.table import Backend, RoutingTable, split
from moorage.spec.routing import Routing
from tests.gateway.tables import backend, key, model, table

Golden = Callable[[str, str], None]

BEFORE = table(
    model("llama", backend("llama-1", 40000, 40001), adapters=("sql",)),
    model("qwen", backend("qwen-1", 40004), timeout_seconds=90),
    model("phi", backend("phi-1", 40002, key_file="/gateway/keys/phi-1")),
    keys=(key("ann", "sk-ann"), key("bob", "sk-bob", models=("qwen",))),
    requires_key=True,
)
CANARY = table(
    model("llama", backend("llama-1", 40000, weight=75), backend("llama-2", 40003, weight=25)),
)


def test_the_routes_of_a_table_are_as_approved(golden: Golden) -> None:
    golden("gateway/routes.json", json.dumps(route_table(BEFORE, scripts_code()), indent=1) + "\n")


def test_the_clusters_of_a_table_are_as_approved(golden: Golden) -> None:
    golden("gateway/clusters.json", json.dumps(clusters([BEFORE]), indent=1) + "\n")


def test_the_listener_is_as_approved(golden: Golden) -> None:
    documents = {
        "bootstrap": bootstrap("/gateway"),
        "listeners": listeners(GatewayOptions(), "/gateway"),
    }
    golden("gateway/listeners.json", json.dumps(documents, indent=1) + "\n")


def test_a_canary_gets_its_share_of_the_requests() -> None:
    (route,) = [
        one["route"]["weighted_clusters"]["clusters"]
        for one in route_table(CANARY, scripts_code())[0]["virtual_hosts"][0]["routes"]
        if "route" in one
    ]
    assert route == [{"name": "llama-1", "weight": 75}, {"name": "llama-2", "weight": 25}]


def test_a_canary_is_not_asked_for_an_adapter_that_it_lacks() -> None:
    lacking = backend("llama-2", 40003, weight=25).model_copy(update={"missing": ("sql",)})
    both = table(model("llama", backend("llama-1", 40000, weight=75), lacking, adapters=("sql",)))
    found = [
        [one["name"] for one in route["route"]["weighted_clusters"]["clusters"]]
        for route in route_table(both, scripts_code())[0]["virtual_hosts"][0]["routes"]
        if "route" in route
    ]
    assert found == [["llama-1", "llama-2"], ["llama-1"]]


def test_the_beginning_of_a_prompt_decides_among_several_replicas_of_a_prefix_aware_model() -> None:
    both, single = (table(model("llama", one)) for one in (aware(1, 2), aware(1)))
    assert [policy(one) for one in (both, single)] == ["MAGLEV", "LEAST_REQUEST"]
    assert [hashes(one) for one in (both, single)] == [True, False]


def test_a_canary_may_be_prefix_aware_where_the_serving_release_is_not() -> None:
    canary = table(model("llama", backend("llama-0", 3, 4, weight=75), aware(1, 2)))
    assert [one["lb_policy"] for one in clusters([canary])] == ["LEAST_REQUEST", "MAGLEV"]
    assert hashes(canary)


def aware(*ports: int) -> Backend:
    return backend("llama-1", *ports).model_copy(update={"routing": Routing.PREFIX_AWARE})


def policy(one: RoutingTable) -> str:
    return str(clusters([one])[0]["lb_policy"])


def hashes(one: RoutingTable) -> bool:
    """Whether a route runs the script that gives keys, and looks at them."""
    routes = route_table(one, scripts_code())[0]["virtual_hosts"][0]["routes"]
    [route] = [route for route in routes if "route" in route]
    assert ("typed_per_filter_config" in route) == ("hash_policy" in route["route"])
    return "hash_policy" in route["route"]


@pytest.mark.parametrize("held", ["asleep", "starting"])
def test_who_asks_for_a_model_that_is_held_waits_at_the_doorman(held: str) -> None:
    def route(**fields: object) -> dict[str, Any]:
        one = table(model("llama", held=held), **fields)
        routes = route_table(one, scripts_code())[0]["virtual_hosts"][0]["routes"]
        return next(route for route in routes if "dynamic_metadata" in route["match"])

    assert route(doorman="/gateway/doorman.sock")["route"]["cluster"] == DOORMAN
    assert route()["direct_response"]["status"] == 503


@pytest.mark.parametrize(
    ("share", "weights"), [(0.25, (75, 25)), (0.001, (99, 1)), (1, (1, 99)), (0.5, (50, 50))]
)
def test_of_a_model_with_a_canary_both_releases_are_asked(
    share: float, weights: tuple[int, int]
) -> None:
    found = split(backend("llama-1", 40000), backend("llama-2", 40003), share)
    assert (found[0].weight, found[1].weight) == weights


def test_while_one_table_follows_another_the_clusters_of_both_are_there() -> None:
    names = [cluster["name"] for cluster in clusters([BEFORE, CANARY])]
    assert names == ["llama-1", "llama-2", "phi-1", "qwen-1"]


def test_a_models_own_name_comes_before_an_adapters_and_of_those_the_first_is_taken() -> None:
    known = table(
        model("a", backend("a-1", 1), adapters=("phi", "sql")),
        model("b", backend("b-1", 2), adapters=("sql", "poet")),
        model("phi", backend("phi-1", 3)),
    )
    assert [one.names for one in known.models] == [("a", "sql"), ("b", "poet"), ("phi",)]


def test_no_key_stands_in_any_document() -> None:
    written = json.dumps([route_table(BEFORE, scripts_code()), clusters([BEFORE])])
    assert "sk-ann" not in written
    assert key("ann", "sk-ann").digest in written
