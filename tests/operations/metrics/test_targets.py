"""What Prometheus is told to scrape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.engines.flags import Variable
from moorage.engines.launch import Application, ContainerSpec
from moorage.gateway.gateway import Gateway
from moorage.operations.metrics.targets import deployed, target_groups
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName
from tests.builders import a_container, a_plan, a_release, a_row

KEY = Variable(name="LLAMA_API_KEY", secret="moorage-key-tiny", origin="default", reason="so")


def serves(engine: EngineName, *containers: ContainerSpec) -> ReleaseRow:
    return a_row(a_release(plan=a_plan(*containers, engine=engine)))


def labelled(**labels: str) -> ContainerSpec:
    named = {f"moorage.{name}": value for name, value in labels.items()}
    return a_container(
        labels={**a_container().labels, **named}, port=40000 + int(labels["replica"])
    )


def test_each_replica_is_a_target_with_the_names_of_the_ledger() -> None:
    first, second = (labelled(replica=str(number)) for number in range(2))
    follower = labelled(replica="0", role="follower")
    row = serves(EngineName.VLLM, first, second, follower)
    found = target_groups([deployed(row)], [], "127.0.0.1:9464")
    assert [one["targets"] for one in found] == [["127.0.0.1:40000"], ["127.0.0.1:40001"]]
    assert found[0]["labels"] == {
        "__scheme__": "http",
        "__metrics_path__": "/metrics",
        "__meta_moorage_kind": "engine",
        "__meta_moorage_key_secret": "",
        "model": "tiny",
        "release": "tiny.v1",
        "replica": "0",
        "host": "local",
        "engine": "vllm",
    }
    assert found[1]["labels"]["replica"] == "1"


METRICS = {"services": {"metrics": 40005}}
ON_RAY = Application(endpoint="http://head:8000/tiny", config={})


@pytest.mark.parametrize(
    ("engine", "changes", "address", "secret"),
    [
        (EngineName.VLLM, {"environment": (KEY,)}, "127.0.0.1:40000", ""),
        (EngineName.SGLANG, {}, "127.0.0.1:40000", ""),
        (EngineName.LLAMA_CPP, {}, "127.0.0.1:40000", ""),
        (EngineName.LLAMA_CPP, {"environment": (KEY,)}, "127.0.0.1:40000", KEY.secret),
        (EngineName.TRITON, {"base_path": ""} | METRICS, "127.0.0.1:40005", ""),
        (EngineName.TRITON, {"base_path": ""}, "", ""),
        (EngineName.TRITON, {"base_path": "/v1"}, "127.0.0.1:40000", ""),
        (EngineName.TRANSFORMERS, {}, "", ""),
        (EngineName.CUSTOM, {}, "", ""),
        (EngineName.VLLM, {"application": ON_RAY}, "", ""),
    ],
)
def test_an_engine_is_scraped_where_it_has_metrics(
    engine: EngineName, changes: dict[str, Any], address: str, secret: str
) -> None:
    row = serves(engine, a_container(**changes))
    found = target_groups([deployed(row)], [], "127.0.0.1:9464")
    assert [one["targets"] for one in found] == [[address]] * bool(address)
    assert [one["labels"]["__meta_moorage_key_secret"] for one in found] == [secret] * bool(address)


def test_a_release_whose_record_cannot_be_read_is_no_target() -> None:
    row = replace(serves(EngineName.VLLM), release=None)
    found = deployed(row)
    assert (found.release, found.engine, found.targets) == ("tiny.v1", None, ())


def test_a_gateway_is_scraped_at_the_exporter() -> None:
    gateway = Gateway(name="main", machine="box")
    (found,) = target_groups([], [gateway], "localhost:9464")
    assert found == {
        "targets": ["localhost:9464"],
        "labels": {
            "__metrics_path__": "/gateways/main",
            "__meta_moorage_kind": "gateway",
            "gateway": "main",
            "host": "box",
        },
    }
