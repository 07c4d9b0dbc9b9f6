from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.vllm.adapters import Adapter, adapter_flags, update_variables
from moorage.memory.options import allowed_rank
from moorage.spec import AdapterUpdatesSpec

TWO = (Adapter(name="a", path="/a", rank=8), Adapter(name="b", path="/b", rank=33))


@pytest.mark.parametrize(
    ("rank", "taken"), [(1, 8), (8, 8), (9, 16), (100, 128), (257, 320), (512, 512), (700, 700)]
)
def test_a_rank_is_rounded_up_to_one_that_vllm_takes(rank: int, taken: int) -> None:
    assert allowed_rank(rank) == taken


def test_the_largest_rank_of_all_adapters_counts() -> None:
    flags = {flag.tokens[0]: flag.tokens[1:] for flag in adapter_flags(TWO, "base", ())}
    assert flags["--max-loras"] == ("2",)
    assert flags["--max-lora-rank"] == ("64",)
    assert flags["--lora-modules"][1] == '{"name": "b", "path": "/b", "base_model_name": "base"}'


def test_without_a_known_rank_vllm_decides() -> None:
    flags = adapter_flags((Adapter(name="a", path="/a"),), "base", ())
    assert "--max-lora-rank" not in [flag.tokens[0] for flag in flags]


@pytest.mark.parametrize("word", ["--lora-modules=x=/x", "--lora_modules"])
def test_the_adapters_of_the_user_take_the_place_of_all(word: str) -> None:
    assert adapter_flags(TWO, "base", (word,)) == ()


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
    flags = {flag.tokens[0]: flag.tokens[1:] for flag in adapter_flags(adapters, "x", (), updates)}
    assert flags["--enable-lora"] == ()
    assert flags["--max-loras"] == (number,)
    assert flags["--max-lora-rank"] == (rank,)
    assert ("--lora-modules" in flags) is bool(adapters)


@pytest.mark.parametrize("words", [("--api-server-count", "2"), ("-asc=4",)])
def test_with_several_api_servers_none_is_loaded_later(words: tuple[str, ...]) -> None:
    with pytest.raises(Failure, match="--api-server-count") as caught:
        adapter_flags((), "x", words, AdapterUpdatesSpec())
    assert caught.value.cause is Cause.BAD_SPEC
    assert adapter_flags((), "x", ("--api-server-count", "1"), AdapterUpdatesSpec())


def test_the_endpoints_are_opened_only_where_the_spec_asks_for_them() -> None:
    assert update_variables(None) == ()
    (variable,) = update_variables(AdapterUpdatesSpec())
    assert (variable.name, variable.value) == ("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "1")
