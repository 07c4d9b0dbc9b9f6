"""What SGLang is started with, by shape; its own parser takes every line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.placement.engine_choice import other_engines
from moorage.readiness.protocol import Phase
from moorage.spec import EngineName, Mode
from tests.builders import a_host, a_profile, a_spec
from tests.engines.planning import over_hosts, planned
from tests.engines.sglang.shapes import IMAGE, SHAPES, plan_of, words
from tests.engines.sglang.wheel import VERSION, parse


@pytest.mark.parametrize("name", SHAPES)
def test_a_plan_says_exactly_what_will_run(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"plans/sglang_{name}.json", plan_of(name).model_dump_json(indent=2) + "\n")


def test_the_real_parser_takes_every_planned_line() -> None:
    containers = [item for name in SHAPES for item in plan_of(name).containers]

    answers = parse([*map(words, containers), ["--model-path", "m", "--no-such-option"]])

    assert answers[:-1] == [""] * len(containers)
    assert "--no-such-option" in answers[-1]


def test_the_shipped_schema_names_every_derived_option() -> None:
    schema = next(one for one in shipped_schemas(EngineName.SGLANG) if one.version == VERSION)
    lines = [words(item) for name in SHAPES for item in plan_of(name).containers]
    used = {word for line in lines for word in line if word.startswith("--")}

    assert used <= set(schema.options)


def test_hosts_of_a_replica_meet_at_the_leader() -> None:
    lines = [words(item) for item in plan_of("two_hosts").containers]

    meeting = [line[line.index("--dist-init-addr") + 1] for line in lines]
    assert [line[line.index("--node-rank") + 1] for line in lines] == ["0", "1"]
    assert meeting[0] == meeting[1]
    assert meeting[0].startswith("10.0.0.1:")


def test_weights_and_cache_are_the_same_bytes_on_a_shared_accelerator() -> None:
    alone, shared = (words(plan_of(name).containers[0]) for name in ("completion", "half_claimed"))

    assert "--max-total-tokens" not in alone
    assert "--max-total-tokens" in shared
    fractions = [float(line[line.index("--mem-fraction-static") + 1]) for line in (alone, shared)]
    assert fractions[1] > fractions[0]


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [("--tp-size 2", "--tensor-parallel-size"), ("--dp 2", "--data-parallel-size")],
)
def test_short_names_of_sizes_are_refused(arguments: str, advice: str) -> None:
    with pytest.raises(Failure, match="is not counted with") as refused:
        planned({"engine": {"name": "sglang", "args": [arguments]}}, a_host(gpus=4), IMAGE)

    assert refused.value.cause == Cause.BAD_SPEC
    assert advice in (refused.value.suggestion or "")


def test_adapters_that_are_loaded_later_are_refused_for_data_parallel_copies() -> None:
    engine = {"name": "sglang", "args": ["--data-parallel-size 2"]}
    wish = {"engine": engine, "lora_updates": {"max": 2, "rank": 16}}

    with pytest.raises(Failure, match="does not load adapters later with --data-parallel-size"):
        planned(wish, a_host(gpus=2), IMAGE)


def test_requests_name_an_adapter_behind_its_model() -> None:
    warnings = plan_of("lora_and_updates").warnings

    assert "lora: requests name an adapter as tiny:poet, tiny:ADAPTER" in warnings
    assert "lora_updates: whoever reaches the port may change what is served" in warnings


def test_it_is_taken_only_by_its_name() -> None:
    spec, profile = a_spec(), a_profile(mode=Mode.EMBEDDING)

    others = other_engines(spec, profile, ENGINES[EngineName.VLLM], ENGINES)

    assert EngineName.SGLANG not in {one.name for one in others}


def test_health_is_a_generated_token_and_not_a_listed_model() -> None:
    probes = ENGINES[EngineName.SGLANG].probes(a_spec(), a_profile())

    assert [probe.path for probe in probes if probe.phase == Phase.HEALTHY] == ["/health_generate"]


def test_a_path_of_the_user_is_asked_instead() -> None:
    spec = a_spec(readiness={"probe": {"path": "/ready"}})

    probes = ENGINES[EngineName.SGLANG].probes(spec, a_profile())

    assert [probe.path for probe in probes if probe.phase == Phase.HEALTHY] == ["/ready"]


def test_a_reranker_is_asked_where_sglang_answers() -> None:
    probes = ENGINES[EngineName.SGLANG].probes(a_spec(), a_profile(mode=Mode.RERANKING))

    assert probes[-1].path == "/v1/rerank"


def test_uneven_hosts_are_refused() -> None:
    hosts = a_host("gpu-1", 4), a_host("gpu-2", 2)
    named = [
        f"{host.name}:cuda:{at}" for host, n in zip(hosts, (4, 2), strict=True) for at in range(n)
    ]
    wish = {"engine": {"name": "sglang"}, "placement": {"hosts": 2, "accelerators": named}}

    with pytest.raises(Failure):
        over_hosts(wish, *hosts, image=IMAGE, weight_bytes=340 * 2**30, context=8192)
