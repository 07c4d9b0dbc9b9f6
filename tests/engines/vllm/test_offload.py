from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.engines.transformers import Transformers
from moorage.engines.vllm import Vllm
from moorage.engines.vllm.offload import (
    CONNECTOR,
    ExtendedCache,
    offload_flags,
    offload_variables,
    offload_warning,
)
from tests.builders import a_spec


@pytest.mark.parametrize(
    ("wish", "variables"),
    [
        ({"ram": 132 * GIB}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "132"}),
        ({"ram": 3 * GIB // 2, "ratio": 9.0}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "1.5"}),
        ({"ratio": 0.333}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "3.33"}),
        ({"ratio": 0.5}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "5.0"}),
        (
            {"ram": GIB, "chunk": 128},
            {"LMCACHE_MAX_LOCAL_CPU_SIZE": "1", "LMCACHE_CHUNK_SIZE": "128"},
        ),
        ({"chunk": 0}, {}),
    ],
)
def test_the_size_is_as_stated_else_a_share_of_what_is_claimed(
    wish: dict[str, Any], variables: dict[str, str]
) -> None:
    made = offload_variables(ExtendedCache.model_validate(wish), "cuda", 10 * GIB)
    assert {item.name: item.value for item in made} == variables


@pytest.mark.parametrize(
    ("wish", "size"), [({"ram": 64 * GIB}, "16"), ({"ratio": 0.5}, "1.25"), ({"ram": GIB}, "0.25")]
)
def test_all_ranks_of_a_host_share_what_is_claimed_there(wish: dict[str, Any], size: str) -> None:
    cache = ExtendedCache.model_validate(wish)
    (made,) = offload_variables(cache, "cuda", 10 * GIB, 4)
    assert (made.name, made.value) == ("LMCACHE_MAX_LOCAL_CPU_SIZE", size)
    assert made.reason.endswith("for each of 4 ranks")


@pytest.mark.parametrize(("kind", "there"), [("cuda", True), ("rocm", True), ("cann", False)])
def test_where_lmcache_does_not_run_it_is_left_out_and_told(kind: str, there: bool) -> None:
    cache = ExtendedCache(ram=GIB)
    assert bool(offload_flags(cache, kind)) is there
    assert bool(offload_variables(cache, kind, GIB)) is there
    assert bool(offload_warning(cache, kind)) is not there


def test_the_connector_is_one_option() -> None:
    (flag,) = offload_flags(ExtendedCache(ram=GIB), "cuda")
    assert flag.tokens == ("--kv-transfer-config", CONNECTOR)


@pytest.mark.parametrize(
    ("wish", "kind", "ram"),
    [
        ({"ram": "16GiB"}, "cuda", 16 * GIB),
        ({"ratio": 0.5}, "rocm", 5 * GIB),
        ({}, "cuda", 12 * GIB),
        ({"ram": "16GiB"}, "cann", 0),
        (None, "cuda", 0),
    ],
)
def test_a_seat_has_to_claim_the_ram_of_its_cache(
    wish: dict[str, Any] | None, kind: str, ram: int
) -> None:
    spec = a_spec(extended_kv_cache=wish)
    assert Vllm().ram_on_accelerators(spec, kind, 10 * GIB) == ram
    assert Transformers().ram_on_accelerators(spec, kind, 10 * GIB) == 0
