from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB, MIB
from moorage.memory.engine_setup import setup_on_accelerator, setup_on_cpu
from moorage.memory.need import MemoryQuery
from moorage.memory.options import MemoryOptions
from moorage.spec import MemorySpec
from tests.memory.models import gib, needed, plain, with_options


@pytest.mark.parametrize(
    ("gib", "name", "options", "length", "cut", "tokens", "seqs"),
    [
        (24, "", {}, 8192, True, 2048, 256),
        (80, "NVIDIA H100 80GB HBM3", {}, 8192, True, 8192, 1024),
        (80, "NVIDIA A100-SXM4-80GB", {}, 8192, True, 2048, 256),
        (192, "", {}, 8192, True, 16384, 1024),
        (80, "", {"throughput": True}, 8192, True, 16384, 2048),
        (80, "", {"max_seqs": 4}, 8192, True, 8192, 4),
        (80, "", {"max_seqs": 4}, 1024, True, 4096, 4),
        (80, "", {"batched_tokens": 512}, 8192, True, 512, 512),
        (80, "", {"batched_tokens": 512, "max_seqs": 900}, 8192, True, 512, 900),
        (24, "", {}, 8192, False, 8192, 256),
        (24, "", {"max_seqs": 1}, 512, False, 512, 1),
        (24, "", {}, 2, True, 512, 256),
    ],
)
def test_the_batch_is_what_vllm_chooses(
    gib: int, name: str, options: dict[str, Any], length: int, cut: bool, tokens: int, seqs: int
) -> None:
    query = MemoryQuery(total=gib * GIB, tokens=length, device_name=name)
    batch = setup_on_accelerator({}, MemoryOptions(**options, chunked_prefill=cut), query).batch
    assert (batch.tokens, batch.seqs) == (tokens, seqs)


def test_on_cpu_it_grows_with_the_ranks() -> None:
    query = MemoryQuery(total=0, tokens=8192, tensor=2)
    batch = setup_on_cpu({}, MemoryOptions(chunked_prefill=True), query).batch
    assert (batch.tokens, batch.seqs) == (4096, 256)


WORKED = [
    ("qwen3-0.6b", 1, 40960, 9.93),
    ("qwen3-8b", 1, 40960, 24.86),
    ("llama-3.1-8b", 1, 131072, 34.41),
    ("llama-3.1-8b", 1, 8192, 19.41),
    ("mistral-7b-v0.1", 1, 32768, 18.55),
    ("llama-3.1-70b", 4, 131072, 47.07),
    ("qwen3-30b-a3b", 1, 40960, 64.66),
    # 0.25 more than worked out by hand with one rope: its global layers scale theirs by 8.
    ("gemma-3-27b-text", 1, 131072, 74.2),
    # 0.14 less than by hand with 1024 requests a step: its cache has states for 971.
    ("qwen3-next-80b-a3b", 4, 262144, 44.5),
    # 0.24 more than by hand: the copies of kv_b_proj in 16 bits.
    ("deepseek-v3", 8, 163840, 94.69),
    ("bge-base-en", 1, 512, 1.1),
]
"""Model, ranks, tokens, GiB on each accelerator: worked out by hand from vLLM's accounting."""


@pytest.mark.parametrize(("name", "ranks", "tokens", "size"), WORKED)
def test_the_whole_need_is_what_was_worked_out_by_hand(
    name: str, ranks: int, tokens: int, size: float
) -> None:
    need = needed(plain(name), tensor=ranks, tokens=tokens)
    assert (need.inside + need.outside) / GIB == pytest.approx(size, abs=0.055)


@pytest.mark.parametrize(
    ("name", "term", "options", "use", "size"),
    [
        # 1024 requests x 128256 logits x 10 B, and the hidden states of 8192 tokens.
        ("llama-3.1-8b", "activation", {}, {}, 1.286),
        # A card of 24 GiB schedules 256 requests and 2048 tokens.
        ("llama-3.1-8b", "activation", {}, {"gib": 24}, 0.321),
        # Without logits, a layer: 3 hidden states and the three parts of the feed-forward.
        ("llama-3.1-8b", "activation", {"runner": "pooling"}, {}, 0.844),
        ("llama-3.1-8b", "activation", {"runner": "pooling"}, {"tensor": 8}, 0.270),
        # Eight experts for each of 8192 tokens: twice the width of 7168.
        ("deepseek-v3", "activation", {}, {"tensor": 8}, 2.188),
        # The tokens of all copies, and whole experts on each rank or a part of each.
        ("deepseek-v3", "activation", {"enable_expert_parallel": True}, {"data": 8}, 15.203),
        ("qwen3-30b-a3b", "activation", {"runner": "pooling"}, {"tensor": 2, "data": 2}, 1.156),
        ("llama-3.1-8b", "activation", {"runner": "pooling"}, {"data": 4}, 0.844),
        ("gemma-3-27b-text", "activation", {"max_seqs": 16}, {}, 1.23),
        ("llama-3.1-8b", "cuda_graphs", {}, {}, 0.997),
        ("llama-3.1-8b", "cuda_graphs", {"enforce_eager": True}, {}, 0),
        ("llama-3.1-8b", "cuda_graphs", {"graph_sizes": 2}, {}, 0.279),
        ("llama-3.1-8b", "cuda_graphs", {"max_seqs": 4}, {}, 0.309),
        ("bge-base-en", "cuda_graphs", {}, {"tokens": 512}, 0),
        ("llama-3.1-8b", "buffers", {}, {}, 0.03125),
        # 131072 positions, scaled by 8 in one layer of six.
        ("gemma-3-27b-text", "buffers", {}, {}, 0.28125),
        ("deepseek-v3", "buffers", {}, {"tensor": 8}, 0.0195),
        ("qwen3-next-80b-a3b", "buffers", {}, {"tensor": 4}, 0.03125),
        # Logits and a hidden state, less a layer; none where a layer is larger.
        ("llama-3.1-8b", "sampling", {}, {}, 0.442),
        ("qwen3-0.6b", "sampling", {}, {}, 1.277),
        ("mistral-7b-v0.1", "sampling", {}, {}, 0),
        ("llama-3.1-8b", "redundancy", {}, {}, 0.150),
        ("llama-3.1-8b", "context", {}, {}, 0.55),
        ("llama-3.1-8b", "nccl", {}, {"tensor": 2}, 0.5),
    ],
)
def test_each_estimate_follows_its_formula(
    name: str, term: str, options: dict[str, object], use: dict[str, int], size: float
) -> None:
    assert gib(needed(with_options(name, **options), **use), term) == pytest.approx(size, abs=0.002)


@pytest.mark.parametrize("options", [{"runner": "pooling"}, {"stated": {"activation": MIB}}])
def test_nothing_is_added_for_sampling_where_none_is_done_or_the_peak_is_stated(
    options: dict[str, Any],
) -> None:
    assert needed(with_options("llama-3.1-8b", **options)).term("sampling") is None


def test_one_rank_talks_to_nobody() -> None:
    assert needed(plain("llama-3.1-8b")).term("nccl") is None


@pytest.mark.parametrize("name", ["activation", "cuda_graphs", "context", "nccl"])
def test_each_estimate_can_be_stated(name: str) -> None:
    stated = with_options("llama-3.1-8b", stated=MemorySpec.model_validate({name: 7 * MIB}))
    term = needed(stated, tensor=2).term(name)
    assert term
    assert (term.bytes, term.exact) == (7 * MIB, False)
    assert term.reason.startswith(f"memory.{name} in the spec")


def test_only_weights_cache_and_adapters_are_called_exact() -> None:
    need = needed(with_options("llama-3.1-8b", lora={}), tensor=2)
    assert [term.name for term in need.terms if term.exact] == ["weights", "kv_cache", "lora"]
    outside = [term.name for term in need.terms if not term.inside]
    assert outside == ["sampling", "context", "nccl"]
    assert all(term.reason for term in need.terms)
