from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.companions import (
    adapters,
    base_warnings,
    companion_mounts,
    update_warnings,
)
from moorage.models.assets import assets_of
from moorage.models.source import Companion, ModelFile
from moorage.spec import ModelSpec, RuntimeName
from tests.builders import LEDGER, a_companion, a_host, a_profile, a_spec, placed

POET = {"name": "poet", "source": "hf://org/poet"}


def request(
    spec: ModelSpec, companions: tuple[Companion, ...], runtime: str = "docker"
) -> LaunchRequest:
    seat = placed(spec, a_host()).seats[0].model_copy(update={"runtime": RuntimeName(runtime)})
    return LaunchRequest(
        spec=spec,
        profile=a_profile(),
        seat=seat,
        host=a_host(),
        release="tiny.v1",
        ledger=LEDGER,
        model_path="/store/tiny",
        companions=companions,
    )


def with_poet(source: str = "hf://org/tiny", rank: int | None = None, **changes: Any) -> Any:
    spec = a_spec(source=source, lora=[{**POET, "rank": rank}])
    return request(spec, (a_companion(assets_of(spec)[1], **changes),))


def test_the_rank_is_the_adapters_own_unless_the_spec_states_it() -> None:
    assert [item.rank for item in adapters(with_poet())] == [8]
    assert [item.rank for item in adapters(with_poet(rank=24))] == [24]


def test_links_that_lead_out_of_an_adapter_are_mounted_one_by_one() -> None:
    file = ModelFile(name="adapter_config.json", size=1, target="/blobs/abc")
    mounts = companion_mounts(with_poet(files=(file,)))
    assert [(mount.source, mount.target) for mount in mounts] == [
        ("/blobs/abc", "/adapters/poet/adapter_config.json")
    ]


def test_an_adapter_of_another_model_is_told() -> None:
    assert base_warnings(with_poet()) == ()
    (told,) = base_warnings(with_poet("hf://org/other"))
    assert told == "lora: poet was made for org/tiny, and hf://org/other is served"


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({}, False),
        ({"lora_updates": {}}, True),
        ({"lora_updates": {}, "secrets": {"VLLM_API_KEY": "key"}}, False),
    ],
)
def test_a_server_that_anybody_may_change_is_told(wish: dict[str, Any], told: bool) -> None:
    assert bool(update_warnings(request(a_spec(**wish), ()), "VLLM_API_KEY")) is told
