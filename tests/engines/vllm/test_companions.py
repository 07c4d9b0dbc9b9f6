from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.companions import Adapter, adapters, base_warnings, companion_mounts
from moorage.engines.plan import plan_launch
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.companions import (
    adapter_flags,
    draft_refusal,
    memory_arguments,
    speculative_flags,
    update_variables,
    update_warnings,
)
from moorage.memory.calibration import calibration_key
from moorage.memory.options import allowed_rank
from moorage.memory.stated_options import memory_options
from moorage.models.assets import assets_of
from moorage.models.profile import ModelProfile
from moorage.models.source import Companion, ModelFile
from moorage.placement.placement import Placed
from moorage.spec import AdapterUpdatesSpec, ModelSpec, RuntimeName, SpeculativeSpec
from moorage.spec.arguments import EngineArguments, parse_words
from tests.builders import (
    LEDGER,
    a_companion,
    a_fleet,
    a_host,
    a_model,
    a_placement,
    a_profile,
    a_spec,
    an_image,
    placed,
    with_companions,
)

TWO = (Adapter(name="a", path="/a", rank=8), Adapter(name="b", path="/b", rank=33))


@pytest.mark.parametrize(
    ("rank", "taken"), [(1, 8), (8, 8), (9, 16), (100, 128), (257, 320), (512, 512), (700, 700)]
)
def test_a_rank_is_rounded_up_to_one_that_vllm_takes(rank: int, taken: int) -> None:
    assert allowed_rank(rank) == taken


def test_the_largest_rank_of_all_adapters_counts() -> None:
    flags = {
        flag.tokens[0]: flag.tokens[1:] for flag in adapter_flags(TWO, "base", EngineArguments())
    }
    assert flags["--max-loras"] == ("2",)
    assert flags["--max-lora-rank"] == ("64",)
    assert flags["--lora-modules"][1] == '{"name": "b", "path": "/b", "base_model_name": "base"}'


def test_without_a_known_rank_vllm_decides() -> None:
    flags = adapter_flags((Adapter(name="a", path="/a"),), "base", EngineArguments())
    assert "--max-lora-rank" not in [flag.tokens[0] for flag in flags]


@pytest.mark.parametrize("word", ["--lora-modules=x=/x", "--lora_modules"])
def test_the_adapters_of_the_user_take_the_place_of_all(word: str) -> None:
    assert adapter_flags(TWO, "base", parse_words((word,))) == ()


@pytest.mark.parametrize(
    ("adapters", "updates", "number", "rank"),
    [
        ((), AdapterUpdatesSpec(), "4", "16"),
        ((), AdapterUpdatesSpec(max=1, rank=100), "1", "128"),
        (TWO, AdapterUpdatesSpec(max=2), "4", "64"),
        (TWO, AdapterUpdatesSpec(max=2, rank=512), "4", "512"),
    ],
)
def test_room_for_later_adapters_is_made_at_the_start(
    adapters: tuple[Adapter, ...], updates: AdapterUpdatesSpec, number: str, rank: str
) -> None:
    flags = {
        flag.tokens[0]: flag.tokens[1:]
        for flag in adapter_flags(adapters, "x", EngineArguments(), updates)
    }
    assert flags["--enable-lora"] == ()
    assert flags["--max-loras"] == (number,)
    assert flags["--max-lora-rank"] == (rank,)
    assert ("--lora-modules" in flags) is bool(adapters)


@pytest.mark.parametrize("words", [("--api-server-count", "2"), ("-asc=4",)])
def test_with_several_api_servers_none_is_loaded_later(words: tuple[str, ...]) -> None:
    with pytest.raises(Failure, match="--api-server-count") as caught:
        adapter_flags((), "x", parse_words(words), AdapterUpdatesSpec())
    assert caught.value.cause is Cause.BAD_SPEC
    assert adapter_flags((), "x", parse_words(("--api-server-count", "1")), AdapterUpdatesSpec())


def test_the_endpoints_are_opened_only_where_the_spec_asks_for_them() -> None:
    assert update_variables(None) == ()
    (variable,) = update_variables(AdapterUpdatesSpec())
    assert (variable.name, variable.value) == ("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "1")


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
        model=a_model(path="/store/tiny", companions=companions),
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
    (warning,) = base_warnings(with_poet("hf://org/other"))
    assert warning == "lora: poet was made for org/tiny, and hf://org/other is served"


@pytest.mark.parametrize(
    ("wish", "warns"),
    [
        ({}, False),
        ({"lora_updates": {}}, True),
        ({"lora_updates": {}, "secrets": {"VLLM_API_KEY": "key"}}, False),
    ],
)
def test_a_server_that_anybody_may_change_is_told(wish: dict[str, Any], warns: bool) -> None:
    assert bool(update_warnings(request(a_spec(**wish), ()), "VLLM_API_KEY")) is warns


LORA = [{"name": "poet", "source": "file:///adapters/poet", "rank": 12}]
NGRAM = {"method": "ngram", "tokens": 3, "ngram_max": 4}
DRAFT = {"method": "draft_model", "tokens": 3, "model": "file:///drafts/small"}


def options_of(profile: ModelProfile, arguments: Sequence[str]) -> str:
    return calibration_key(profile, "vllm", "0.32.0", "cuda", "H100", arguments).options


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"lora": LORA},
        {"lora": LORA, "lora_updates": {"max": 2, "rank": 64}},
        {"lora": LORA, "engine": {"args": ["--max-loras 8"]}},
        {"lora": LORA, "engine": {"args": ["--enable-lora", "--lora-modules poet=/x"]}},
        {"speculative": NGRAM},
        {"speculative": DRAFT},
        {"speculative": NGRAM, "engine": {"args": ['-sc {"method": "mtp"}']}},
    ],
    ids=str,
)
def test_what_fields_of_the_spec_make_is_known_before_the_launch(wish: dict[str, Any]) -> None:
    spec = a_spec(**wish)
    model, profile = with_companions(a_model(), spec), a_profile()
    host = a_host()
    placement, fleet = a_placement(spec, host), a_fleet(host)
    plan = plan_launch(Placed(spec, model, profile, placement, fleet, "tiny.v1"), an_image(), "l")
    given = spec.engine.arguments
    options = memory_options(spec, companions=model.companions)
    fields = memory_arguments(spec, options.lora)
    started = options_of(profile, plan.containers[0].argv)
    assert started == options_of(profile, (*fields, *given.words))
    assert bool(started) == bool(wish)


@pytest.mark.parametrize(
    ("wish", "model", "config"),
    [
        (
            {"method": "ngram", "tokens": 6, "ngram_min": 2, "ngram_max": 4},
            "",
            {"num_speculative_tokens": 6, "prompt_lookup_max": 4, "prompt_lookup_min": 2},
        ),
        (
            {"method": "eagle3", "tokens": 2, "model": "hf://o/draft"},
            "/draft",
            {"num_speculative_tokens": 2, "model": "/draft"},
        ),
        ({"method": "mtp"}, "", {}),
        ({"method": "mtp", "tokens": 1}, "", {"num_speculative_tokens": 1}),
    ],
)
def test_speculative_decoding_is_one_option(
    wish: dict[str, Any], model: str, config: dict[str, Any]
) -> None:
    (flag,) = speculative_flags(SpeculativeSpec.model_validate(wish), model)
    name, value = flag.tokens
    expected = {"method": wish["method"], **config}
    assert (name, json.loads(value)) == ("--speculative-config", expected)


def test_without_speculative_decoding_there_is_no_flag() -> None:
    assert speculative_flags(None) == ()


@pytest.mark.parametrize(
    ("version", "draft", "refused"),
    [
        ("0.9.2", DRAFT, False),
        ("0.10.0", DRAFT, True),
        ("0.13.0", DRAFT, True),
        ("0.13.0", NGRAM, False),
        ("0.14.1", DRAFT, True),
        ("0.15.0", DRAFT, False),
        ("", DRAFT, False),
    ],
)
def test_versions_that_cannot_draft_with_a_model_of_its_own_are_refused(
    version: str, draft: dict[str, Any], refused: bool
) -> None:
    asked = request(a_spec(speculative=draft), ())
    image = an_image(engine_version=version)
    failure = draft_refusal(asked.model_copy(update={"image": image}))
    assert bool(failure) is refused
    if failure:
        assert "0.15.0 or newer" in failure.suggestion
