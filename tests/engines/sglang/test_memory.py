"""What SGLang leaves for its cache, and for what it takes afterwards, by its own arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Refusal
from moorage.common.units import GIB
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.memory.need import Need
from moorage.memory.static_part import after_cache
from moorage.models.profile import derive_profile
from moorage.placement.demand import Split, Subject
from moorage.placement.memory import memory_of
from moorage.placement.placement import Placed
from moorage.placement.view import AcceleratorKind
from moorage.spec import EngineName
from tests.builders import LEDGER, a_host, a_model, a_spec, an_accelerator, with_companions
from tests.engines.planning import LORA, over_hosts, placed_as_read
from tests.engines.sglang.shapes import IMAGE, words
from tests.memory.models import known

BEFORE = ("context", "nccl")


def placed(name: str, gib: int, free: int | None = None, gpus: int = 1, **wish: Any) -> Placed:
    """Where a known model is placed on accelerators of which others take all but `free` GiB."""
    config, headers = known(name)
    sizes = {} if free is None else {"memory_free": free * GIB}
    host = a_host(accelerators=tuple(an_accelerator(at, gib, **sizes) for at in range(gpus)))
    wish["engine"] = {"name": "sglang", **wish.get("engine", {})}
    model = with_companions(a_model(config=config, headers=headers), a_spec(**wish))
    return placed_as_read(model, host, **wish)


def need_of(place: Placed) -> Need:
    need = place.placement.seats[0].need
    assert need is not None
    return need


def size(need: Need, *names: str) -> int:
    return sum(term.bytes for term in need.terms if term.name in names)


def divided(place: Placed) -> tuple[int, int]:
    """Bytes that SGLang leaves for its cache, and outside the fraction.

    `mem_cache/kv_cache_configurator.py:_profile_available_bytes`.
    """
    need, accelerator = need_of(place), place.snapshot.hosts[0].accelerators[0]
    line = words(plan_launch(place, IMAGE, LEDGER).containers[0])
    fraction = float(line[line.index("--mem-fraction-static") + 1])
    before = accelerator.memory_free - size(need, *BEFORE)
    loaded = before - size(need, "weights", "lora", "draft")
    kept = int(before * (1 - fraction))
    return loaded - kept, kept


@pytest.mark.parametrize("free", [80, 50, 24])
def test_the_cache_is_as_large_as_claimed_beside_a_strangers_memory(free: int) -> None:
    place = placed("llama-3.1-8b", 80, free, context=32768)

    cache, _ = divided(place)

    assert cache >= size(need_of(place), "kv_cache")
    assert cache <= size(need_of(place), "kv_cache") + GIB // 2


def test_all_hosts_of_a_replica_come_to_one_size_of_the_cache() -> None:
    sizes = (80, 60)
    hosts = [
        a_host(f"gpu-{at}", accelerators=(an_accelerator(memory_free=free * GIB),))
        for at, free in enumerate(sizes, 1)
    ]
    wish = {"engine": {"name": "sglang"}, "placement": {"hosts": 2}}

    plan = over_hosts(wish, *hosts, image=IMAGE, weight_bytes=60 * GIB, context=8192)

    lines = [words(item) for item in plan.containers]
    fractions = {line[line.index("--mem-fraction-static") + 1] for line in lines}
    assert len(lines) == len(sizes)
    assert len(fractions) == 1


@pytest.mark.parametrize(
    ("name", "gib", "free", "wish"),
    [
        ("llama-3.1-8b", 24, 24, {"context": 8192}),
        ("llama-3.1-8b", 80, 80, {"context": 131072}),
        ("llama-3.1-8b", 80, 50, {"context": 131072}),
        ("llama-3.1-70b", 80, 80, {"gpus": 4, "context": 131072}),
        ("qwen3-30b-a3b", 141, 141, {"context": 32768}),
    ],
)
def test_a_whole_accelerator_leaves_what_is_taken_after_the_cache(
    name: str, gib: int, free: int, wish: dict[str, Any]
) -> None:
    place = placed(name, gib, free, placement={"policy": "whole"}, **wish)

    cache, kept = divided(place)

    need = need_of(place)
    table = (need.batch.seqs + 1) * need.tokens * 4
    named = ("activation", "cuda_graphs", "buffers", "sampling")
    assert size(need, "request_table") == table
    assert after_cache(need) == size(need, *named) + table
    assert kept >= after_cache(need)
    assert cache >= size(need, "kv_cache")


@pytest.mark.parametrize(
    "arguments",
    [
        "--chunked-prefill-size 2048",
        "--chunked-prefill-size -1",
        "--max-running-requests 16",
        "--disable-cuda-graph",
        "--cuda-graph-max-bs-decode 8",
        "--cuda-graph-bs-decode 1 2",
        "--enable-lora --max-loras-per-batch 2",
        """--json-model-override-args '{"num_key_value_heads": 4}'""",
        "--speculative-algorithm STANDALONE --speculative-draft-model-path org/draft",
        "--mem-fraction-static 0.7",
    ],
)
def test_the_claim_follows_sglangs_own_options(arguments: str) -> None:
    plain, other = (
        placed("llama-3.1-8b", 80, context=32768, engine={"args": args})
        for args in ([], [arguments])
    )

    claims = [place.placement.seats[0].accelerator_bytes for place in (plain, other)]
    assert claims[0] != claims[1]


@pytest.mark.parametrize("wish", [{"lora": LORA}, {"lora_updates": {"max": 2, "rank": 24}}])
def test_adapters_are_counted_with_the_slots_that_are_ordered(wish: dict[str, Any]) -> None:
    place = placed("llama-3.1-8b", 80, context=32768, **wish)

    line = words(plan_launch(place, IMAGE, LEDGER).containers[0])
    term = need_of(place).term("lora")
    assert term is not None
    assert line[line.index("--max-loras-per-batch") + 1] == "3"
    assert term.reason.startswith("3 adapters")


def test_adapters_have_that_slot_where_auto_came_to_sglang() -> None:
    config, headers = known("llama-3.1-8b")
    model, spec = a_model(config=config, headers=headers), a_spec(lora=LORA, context=32768)
    profile = derive_profile(spec, model)
    subject = Subject(spec, profile, memory_of(spec, model, profile))
    kind = AcceleratorKind("cuda", "", 80 * GIB)

    ways = [
        subject.demand(ENGINES[name], None).full(kind, Split())
        for name in (EngineName.VLLM, EngineName.SGLANG)
    ]

    needs = [way.need for way in ways if not isinstance(way, Refusal)]
    reasons = [term.reason for need in needs if (term := need.term("lora"))]
    assert [reason.split()[0] for reason in reasons] == ["2", "3"]
    assert [bool(need.term("request_table")) for need in needs] == [False, True]


def cell(name: str, tensor: int) -> float:
    """Bytes of a token in all attention layers of a rank, as `pool_configurator.py` adds them up.

    Gemma 3 has no pool of its own for windows (`model_overrides/gemma2_gemma3.py`).
    """
    config = known(name)[0]
    heads = max(1, config["num_key_value_heads"] // tensor)
    layer = heads * 2 * config.get("head_dim", 128) * 2
    layers = {
        "gemma-3-27b-text": config["num_hidden_layers"],
        "mistral-7b-v0.1": config["num_hidden_layers"],
        "gpt-oss-20b-bf16": config["num_hidden_layers"] // 2 * 1.8,
        "qwen3-next-80b-a3b": config["num_hidden_layers"] // 4,
    }
    return float(layers[name] * layer)


WINDOWS = [
    ("gemma-3-27b-text", 131072, ""),
    ("gpt-oss-20b-bf16", 131072, ""),
    ("mistral-7b-v0.1", 32768, ""),
    ("gpt-oss-20b-bf16", 131072, "--max-running-requests 8"),
]


@pytest.mark.parametrize(("name", "context", "arguments"), WINDOWS)
def test_the_promised_context_fits_beside_windows(name: str, context: int, arguments: str) -> None:
    place = placed(name, 141, context=context, engine={"args": [arguments] if arguments else []})

    cache, _ = divided(place)

    assert need_of(place).tokens == context
    assert context <= cache / cell(name, 1) < context * 1.2


def state_of(name: str, tensor: int) -> int:
    """Bytes of one request's states on a rank (`configs/mamba_utils.py`: bfloat16 and float32)."""
    config: dict[str, int] = known(name)[0]
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    size = config["linear_key_head_dim"]
    width = (2 * keys * size + values * config["linear_value_head_dim"]) // tensor
    convolution = width * (config["linear_conv_kernel_dim"] - 1) * 2
    recurrent = values // tensor * size * config["linear_value_head_dim"] * 4
    return (convolution + recurrent) * (config["num_hidden_layers"] // 4 * 3)


@pytest.mark.parametrize(
    ("context", "arguments"),
    [
        (262144, ""),
        (8192, ""),
        (32768, "--mamba-full-memory-ratio 0.4"),
        (32768, "--disable-radix-cache --max-running-requests 64"),
    ],
)
def test_the_promised_context_fits_beside_states(context: int, arguments: str) -> None:
    name, tensor = "qwen3-next-80b-a3b", 4
    wish: dict[str, Any] = {
        "context": context,
        "concurrency": 2,
        "placement": {"accelerators": tensor},
    }
    args = [arguments] if arguments else []
    place = placed(name, 80, gpus=tensor, engine={"args": args}, **wish)

    rest, _ = divided(place)

    state, ratio = state_of(name, tensor), 0.4 if "0.4" in arguments else 0.9
    slots, each = int((rest * ratio / (1 + ratio) - state) // state), 5
    if "radix" in arguments:
        slots, each = 64, 1
    tokens = (rest - (slots + 1) * state) / cell(name, tensor)
    assert need_of(place).tokens == context
    assert tokens >= 2 * context
    assert slots // each >= 2


def test_windows_that_requests_decide_about_are_not_counted_exactly() -> None:
    args = ["--disable-radix-cache"]
    place = placed("gpt-oss-20b-bf16", 141, context=8192, engine={"args": args})

    assert need_of(place).cache is None
