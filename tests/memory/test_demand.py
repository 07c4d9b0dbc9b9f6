from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.memory.demand import MemoryModel, memory_model
from moorage.memory.exact import STAND_IN
from moorage.memory.facts import Facts
from moorage.memory.kv import KVKind
from moorage.memory.layer_caches import DESCRIBED_TYPES
from moorage.memory.need import CpuNeed, MemoryPrediction, MemoryQuery, Need
from moorage.memory.options import LoraOptions, MemoryOptions, MemorySettings
from moorage.memory.sizing import most
from moorage.models.assets import assets_of
from moorage.models.source import TensorHeader, TensorHeaders, WeightSummary
from moorage.spec import MemorySpec, Mode
from tests.builders import a_companion, a_model, a_profile, a_spec
from tests.conformance.memory import Model
from tests.conformance.test_memory import DATA as CONFORMANCE
from tests.conformance.test_memory import MODELS
from tests.memory.models import gib, known, needed, plain, refusal, weights_of, with_options
from tests.memory.prediction import predict_memory

NAMES = ("llama-3.1-8b", "gemma-3-27b-text", "mistral-7b-v0.1", "gpt-oss-20b-bf16")
"""Full, mostly sliding, all sliding, half sliding."""

names = st.sampled_from(NAMES)
lengths = st.integers(1, 32768)


@given(names, lengths, lengths, st.integers(1, 8), st.integers(1, 8))
def test_more_tokens_or_more_requests_never_need_less(
    name: str, one: int, other: int, few: int, more: int
) -> None:
    low, high = sorted((one, other))
    few, more = sorted((few, more))
    model = plain(name)
    assert (
        needed(model, tokens=low, concurrency=few).inside
        <= needed(model, tokens=high, concurrency=few).inside
        <= needed(model, tokens=high, concurrency=more).inside
    )


@settings(deadline=None)
@given(names, st.integers(1, 100), st.sampled_from((1, 2, 4)), st.integers(1, 4))
def test_the_longest_context_fits_and_one_block_more_does_not(
    name: str, budget: int, ranks: int, concurrency: int
) -> None:
    model, at_most = plain(name), 32768
    use: dict[str, Any] = {"total": 100 * GIB, "tensor": ranks, "concurrency": concurrency}
    query = MemoryQuery(**use, tokens=at_most)
    longest = most(model, "tokens", query, budget=budget * GIB)
    if longest:
        assert needed(model, 100, tokens=longest, tensor=ranks, concurrency=concurrency).fits(
            100 * GIB, budget * GIB
        )
    if longest < at_most:
        need = needed(model, 100, tokens=longest + 1, tensor=ranks, concurrency=concurrency)
        assert need.claim(100 * GIB) > budget * GIB


@pytest.mark.parametrize("name", [*NAMES, "qwen3-next-80b-a3b", "llama-4-scout-text"])
@pytest.mark.parametrize("use", [{}, {"tensor": 4}, {"pipeline": 2}, {"concurrency": 5}])
def test_vllm_starts_with_the_cache_that_is_counted(name: str, use: dict[str, int]) -> None:
    """vLLM's own check passes with this pool, and would not with one byte less."""
    need = needed(plain(name), tokens=20_000, **use)
    term = need.term("kv_cache")
    assert term
    for size, starts in ((term.bytes, True), (term.bytes - 1, False)):
        rules = MemorySettings(
            tensor_parallel_size=need.tensor_parallel_size,
            pipeline_parallel_size=need.pipeline_parallel_size,
            max_model_len=need.tokens,
            max_num_batched_tokens=need.batch.tokens,
            kv_pool_bytes=size,
        )
        found = predict_memory(known(name)[0], STAND_IN, rules)
        assert isinstance(found, MemoryPrediction)
        assert found.num_blocks
        held = (found.num_blocks - 1) // found.blocks_per_full_request
        assert (held >= need.concurrency) is starts
        assert found.full_request_fits is (held >= 1)


@pytest.mark.parametrize("name", [*NAMES, "qwen3-next-80b-a3b", "deepseek-v3", "bge-base-en"])
def test_the_cache_does_not_depend_on_the_weights(name: str) -> None:
    config, headers = known(name)
    rules = MemorySettings(max_model_len=500)
    with_weights, without = (predict_memory(config, h, rules) for h in (headers, STAND_IN))
    assert isinstance(with_weights, MemoryPrediction)
    assert isinstance(without, MemoryPrediction)
    assert with_weights == without.model_copy(
        update={
            "weight_bytes_per_rank": with_weights.weight_bytes_per_rank,
            "stages": with_weights.stages,
        }
    )


def test_the_stage_that_needs_most_counts() -> None:
    model = plain("llama-3.1-70b")
    whole, half = needed(model, tensor=2), needed(model, tensor=2, pipeline=2)
    assert gib(half, "weights") == pytest.approx(32.855, abs=0.001)
    assert gib(half, "kv_cache") == pytest.approx(gib(whole, "kv_cache") / 2, rel=0.01)
    assert "stage 2 of 2" in half.terms[0].reason


@pytest.mark.parametrize("whole_experts", [False, True])
@pytest.mark.parametrize(("tensor", "data"), [(1, 4), (2, 2), (4, 2)])
def test_copies_of_a_model_divide_its_experts(tensor: int, data: int, whole_experts: bool) -> None:
    """48 layers of 128 experts, each with three matrices of 2048 x 768."""
    model = with_options("qwen3-30b-a3b", enable_expert_parallel=whole_experts)
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    alone, shared = needed(model, tensor=tensor), needed(model, tensor=tensor, data=data)
    rest = alone.terms[0].bytes - experts // tensor
    assert shared.terms[0].bytes == rest + experts // (tensor * data)
    assert f"experts over {tensor * data}" in shared.terms[0].reason
    assert shared.term("nccl")


def test_each_rank_has_all_shared_experts_if_ranks_and_copies_share_the_tokens() -> None:
    """58 layers with one shared expert, of three matrices of 7168 x 2048 and their scales."""
    shared = 58 * 3 * (7168 * 2048 + 56 * 16 * 4)
    models = [with_options("deepseek-v3", enable_expert_parallel=on) for on in (False, True)]
    one, other = (needed(model, tensor=2, data=4).terms[0].bytes for model in models)
    assert other - one == shared // 2


def test_the_stated_layers_of_a_stage_decide_which_stage_needs_most() -> None:
    equal = weights_of(plain("llama-3.1-8b"), pipeline=2)
    stated = with_options("llama-3.1-8b", layer_partition=(4, 28))
    assert weights_of(stated, pipeline=2) > 1.5 * equal
    assert refusal(stated).reason is Reason.REJECTED


def test_each_kind_of_accelerator_has_its_own_weights_where_its_kernel_pads_experts() -> None:
    config, headers = known("gpt-oss-20b-bf16")
    names = {"gate_up_proj": (32, 5760, 90), "down_proj": (32, 2880, 90)}
    packed = [(n, h.dtype, h.shape) for n, h in headers.items() if ".experts." not in n]
    packed += [
        (f"model.layers.{layer}.mlp.experts.{name}_{leaf}", "U8", (*shape, *more))
        for layer in range(24)
        for name, shape in names.items()
        for leaf, more in (("blocks", (16,)), ("scales", ()))
    ]
    config = config | {"quantization_config": {"quant_method": "mxfp4"}}
    model = MemoryModel(config, TensorHeaders(packed), MemoryOptions())
    adapted = model.with_options(lora=LoraOptions())
    found = {
        name: needed(model, device_name=name).term("weights")
        for name in ("NVIDIA H100 80GB", "NVIDIA A40", "NVIDIA L40S", "")
    }
    hopper, ampere, ada, other = (term for term in found.values() if term)
    assert ampere.bytes == ada.bytes > 1.05 * hopper.bytes
    assert other.bytes > 1.03 * ampere.bytes
    assert [term.exact for term in (hopper, ampere, ada, other)] == [True, True, True, False]
    unsure = needed(adapted, device_name="NVIDIA L40S").term("weights")
    assert unsure
    assert not unsure.exact
    assert ada.bytes <= unsure.bytes < other.bytes


@pytest.mark.parametrize(
    ("name", "tensor", "copies"),
    [("deepseek-v3", 8, 61 * (128 // 8) * (128 + 128) * 512 * 2), ("deepseek-v3-bf16", 16, 0)],
)
def test_each_rank_holds_the_copies_that_mla_makes_of_quantised_weights(
    name: str, tensor: int, copies: int
) -> None:
    created = predict_memory(*known(name), MemorySettings(tensor_parallel_size=tensor))
    assert isinstance(created, MemoryPrediction)
    held = weights_of(plain(name), gib=192, tensor=tensor)
    assert held == created.weight_bytes_per_rank + copies


def test_copies_of_a_dense_model_are_independent() -> None:
    alone, copied = (needed(plain("llama-3.1-8b"), data=data) for data in (1, 4))
    assert copied.terms == alone.terms


class Counted(TensorHeaders):
    """Counts how often it is read."""

    __slots__ = ("reads",)

    def __init__(self, headers: Any) -> None:
        super().__init__(headers)
        self.reads = 0

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return super().__iter__()


def test_the_tensors_of_a_model_are_read_once() -> None:
    config, headers = known("llama-3.1-8b")
    counted = Counted((name, h.dtype, h.shape) for name, h in headers.items())
    model = MemoryModel(config, counted, MemoryOptions())
    for tokens in range(1000, 9000, 1000):
        for ranks in (1, 2):
            needed(model, tokens=tokens, tensor=ranks)
    assert counted.reads == 1


def test_a_refusal_is_found_once_too() -> None:
    config, headers = known("llama-3.1-8b")
    counted = Counted([*((n, h.dtype, h.shape) for n, h in headers.items()), ("odd", "BF16", (3,))])
    model = MemoryModel(config, counted, MemoryOptions())
    reasons = {refusal(model, tokens=tokens, tensor=2).note for tokens in (100, 200, 300)}
    assert reasons == {"how 'odd' is split over ranks is not known"}
    assert counted.reads == 1


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        ({"tensor": 3}, "Total number of attention heads (32) must be divisible by"),
        ({"tokens": 200_000}, "User-specified max_model_len (200000) is greater than"),
    ],
)
def test_what_vllm_refuses_is_refused_even_with_a_stated_claim(
    use: dict[str, int], reason: str
) -> None:
    stated = MemorySpec.model_validate({"claim": GIB})
    for options in ({}, {"stated": stated}):
        found = refusal(with_options("llama-3.1-8b", **options), **use)
        assert found.reason is Reason.REJECTED
        assert reason in found.note


DCP = {"decode_context_parallel_size": 2}


@pytest.mark.parametrize(
    ("name", "options", "tensor", "reason"),
    [
        ("llama-3.1-8b", {}, 32, ""),  # eight key/value heads, each copied to four ranks
        ("gpt-oss-20b-bf16", {}, 16, "8 key/value heads cannot be copied to 16 ranks"),
        ("gpt-oss-20b-bf16", {"attention_copies": True}, 16, ""),  # two ranks share the heads
        ("llama-3.1-8b", {"enable_expert_parallel": True}, 1, "Number of experts in the model"),
        ("llama-3.1-8b", DCP, 1, "tp_size=1 must be divisible by dcp_size=2"),
        ("llama-3.1-8b", DCP, 2, ""),
        # Blocks of four bits instead of sixteen would fit.
        ("llama-3.1-8b", {"kv_bytes": GIB // 2}, 1, ""),
        # The stated method decides where the blocks of the checkpoint may be cut.
        ("deepseek-v3", {"quantization": "humming"}, 128, ""),
        ("deepseek-v3", {"quantization": "fp8"}, 128, "the quantisation block of 128"),
    ],
)
def test_what_vllm_refuses_is_refused_even_with_an_option_that_no_rule_covers(
    name: str, options: dict[str, Any], tensor: int, reason: str
) -> None:
    found = refusal(with_options(name, uncovered="--an-option", **options), tensor=tensor)
    assert found.reason is (Reason.REJECTED if reason else Reason.UNKNOWN)
    assert (reason or "--an-option; `memory.claim` states the bytes") in found.note


MTP: dict[str, Any] = {"draft": {"method": "mtp", "tokens": 1}}


def test_a_model_that_drafts_with_a_layer_of_its_own_keeps_its_exact_figures() -> None:
    """DeepSeek-V3 has 61 layers, and one that drafts, with an embedding of its own."""
    use = {"tensor": 8, "tokens": 163_840, "concurrency": 2}
    alone, drafting = (
        needed(m, **use) for m in (plain("deepseek-v3"), with_options("deepseek-v3", **MTP))
    )
    assert drafting.terms[:2] == alone.terms[:2]
    assert drafting.cache == alone.cache
    draft = drafting.term("draft")
    assert draft
    assert not draft.exact
    # 256 experts of three matrices of 7168 x 2048, and the embedding, over eight ranks.
    layer = (256 * 3 * 7168 * 2048 + 129_280 * 7168 * 2) / 8 / GIB
    cache = gib(alone, "kv_cache") / 61
    assert gib(drafting, "draft") == pytest.approx(layer + cache, rel=0.15)


def test_each_draft_keeps_the_recurrent_states_once_more() -> None:
    """Qwen3-Next has three groups of states and one of attention, each of twelve layers."""
    use = {"tensor": 2, "tokens": 8192}
    name = "qwen3-next-80b-a3b"
    one, two = (
        needed(with_options(name, draft={"method": "mtp", "tokens": tokens}), **use)
        for tokens in (1, 2)
    )
    assert one.cache
    block = one.cache.bytes_per_block * 13 // 12 / GIB
    assert gib(two, "draft") - gib(one, "draft") == pytest.approx(3 * block)
    given = needed(with_options(name, **MTP, kv_bytes=8 * GIB), **use)
    assert gib(given, "draft") == 0


def test_a_layer_that_drafts_has_a_page_in_each_block_of_a_pool_for_many_states() -> None:
    """vLLM needs a block for each of `--max-num-seqs` requests."""
    use = {"tensor": 4, "tokens": 32_768}
    found = needed(with_options("qwen3-next-80b-a3b", **MTP, max_seqs=300), **use)
    assert found.cache
    page = found.cache.bytes_per_block // 12  # of four groups of twelve layers
    cached = found.term("kv_cache").bytes + found.term("draft").bytes  # type: ignore[union-attr]
    assert cached >= 300 * (found.cache.bytes_per_block + page)


UNKNOWN = [
    ({"uncovered": "--cpu-offload-gb keeps a part of the weights in RAM"}, "--cpu-offload-gb"),
    ({"draft": {"method": "eagle3", "model": "org/draft"}}, "draft model (org/draft) is not read"),
]


@pytest.mark.parametrize(("options", "reason"), UNKNOWN)
def test_what_the_rules_do_not_cover_is_refused_until_the_claim_is_stated(
    options: dict[str, Any], reason: str
) -> None:
    found = refusal(with_options("llama-3.1-8b", **options))
    assert found.reason is Reason.UNKNOWN
    assert reason in found.note
    stated = MemorySpec.model_validate({"claim": "30GiB"})
    need = needed(with_options("llama-3.1-8b", **options, stated=stated))
    assert need.claim(80 * GIB) == 30 * GIB
    assert [term.name for term in need.terms] == ["context"]


@pytest.mark.parametrize(
    ("own", "stated", "covered"),
    [
        ("fp8", "fp8", True),
        ("awq", "awq_marlin", True),
        ("gptq", "gptq_marlin", True),
        ("modelopt", "modelopt_fp4", True),
        ("compressed-tensors", "compressed-tensors", True),
        ("mxfp4", "gpt_oss_mxfp4", True),
        ("awq", "moe_wna16", False),
        ("", "fp8", False),
    ],
)
def test_a_method_that_is_the_checkpoints_own_keeps_the_exact_figures(
    own: str, stated: str, covered: bool
) -> None:
    config, headers = known("llama-3.1-8b")
    config = {**config, "quantization_config": {"quant_method": own}} if own else config
    query = MemoryQuery(total=80 * GIB, tokens=8192)
    alone, named = (
        MemoryModel(config, headers, MemoryOptions(quantization=name)).need(query)
        for name in ("", stated)
    )
    assert (named == alone) is covered
    assert covered or f"--quantization {stated}" in str(named)


def test_a_method_that_a_package_adds_is_planned_with_a_stated_claim() -> None:
    config, headers = known("llama-3.1-8b")
    config = {**config, "quantization_config": {"quant_method": "bitsandbytes"}}
    stated = MemorySpec.model_validate({"claim": "30GiB"})
    models = [
        MemoryModel(config, headers, MemoryOptions(extended=on, stated=stated))
        for on in (True, False)
    ]
    assert needed(models[0]).stated == 30 * GIB
    assert refusal(models[1]).reason is Reason.REJECTED


def test_an_architecture_that_nobody_knows_is_refused() -> None:
    config, headers = known("llama-3.1-8b")
    model = MemoryModel({**config, "architectures": []}, headers, MemoryOptions())
    assert refusal(model).reason is Reason.UNKNOWN
    assert most(model, "tokens", MemoryQuery(total=80 * GIB, tokens=8192), budget=80 * GIB) == 0


@pytest.mark.parametrize(
    ("model_type", "options", "exact"),
    [
        ("llama", {}, True),
        ("internlm2", {}, True),
        ("of-the-future", {}, False),
        ("of-the-future", {"kv_bytes": 4 * GIB}, True),
    ],
)
def test_the_cache_of_a_model_type_that_no_rule_describes_is_an_estimate(
    model_type: str, options: dict[str, Any], exact: bool
) -> None:
    config, headers = known("llama-3.1-8b")
    model = MemoryModel(
        {**config, "model_type": model_type}, headers, MemoryOptions.model_validate(options)
    )
    term, plain_term = (needed(m).term("kv_cache") for m in (model, plain("llama-3.1-8b")))
    assert term
    assert plain_term
    assert term.exact is exact
    assert ("no rule describes" in term.reason) is not exact
    assert options or term.bytes == plain_term.bytes
    on_cpu = model.cpu_need(tokens=8192)
    assert isinstance(on_cpu, CpuNeed)
    assert {t.name: t.exact for t in on_cpu.terms}["kv_cache"] is exact


@pytest.mark.parametrize(
    ("versions", "prefix", "states", "exact"),
    [
        (("0.26.0",), None, 1, True),
        (("0.26.1",), True, 16, True),
        (("0.32.0",), None, 3, True),
        (("0.29.0",), None, 16, False),
        (("0.29.0",), True, 16, False),
        (("0.29.0",), False, 1, True),
        (("0.20.0",), None, 1, False),
        (("",), None, 3, False),
        # Each keeps one state, or the last ones: not one for each block.
        (("0.26.0", "0.32.0"), None, 3, True),
    ],
)
def test_how_many_states_a_request_keeps_is_exact_in_the_versions_that_were_read(
    versions: tuple[str, ...], prefix: bool | None, states: int, exact: bool
) -> None:
    model = Model(CONFORMANCE / "memory-oracle" / "falcon-h1-small")
    options = MemoryOptions(enable_prefix_caching=prefix)
    need = needed(MemoryModel(model.config, model.tensors, options), versions=versions)
    term, cache = need.term("kv_cache"), need.cache
    assert term
    assert cache
    kept = {g.blocks_per_full_request for g in cache.groups if g.kind == KVKind.MAMBA}
    assert (kept, term.exact) == ({states}, exact)


@pytest.mark.parametrize("name", MODELS)
def test_the_caches_of_models_compared_with_vllm_are_exact(name: str) -> None:
    assert Facts(Model(CONFORMANCE / name).config).model_type in DESCRIBED_TYPES


def test_a_stated_claim_bounds_the_longest_context() -> None:
    free = plain("llama-3.1-8b")
    stated = with_options("llama-3.1-8b", stated=MemorySpec.model_validate({"claim": "20GiB"}))
    query = MemoryQuery(total=80 * GIB, tokens=131072)
    assert most(free, "tokens", query, 80 * GIB) == 131072
    assert 12_000 < most(stated, "tokens", query, 80 * GIB) < 13_000


def test_files_without_headers_stand_in_by_their_size() -> None:
    config, _ = known("llama-3.1-8b")
    files = WeightSummary(family="bin", bytes=16 * GIB)
    model = MemoryModel(config, TensorHeaders(), MemoryOptions(), files=files)
    term = needed(model, tensor=2).term("weights")
    assert term
    assert (term.bytes, term.exact) == (8 * GIB, False)
    assert term.reason == "16.0 GiB of bin files, whose tensors are not known"
    assert needed(model, tensor=2).term("kv_cache") == needed(plain("llama-3.1-8b"), tensor=2).term(
        "kv_cache"
    )


def test_pickled_float32_weights_are_cast_while_they_are_loaded() -> None:
    config = {**known("llama-3.1-8b")[0], "torch_dtype": "float32"}
    files = WeightSummary(family="bin", bytes=32 * GIB)
    model = MemoryModel(config, TensorHeaders(), MemoryOptions(), files=files)
    assert weights_of(model) == 16 * GIB


def test_nothing_known_of_the_weights_is_a_refusal_never_zero_bytes() -> None:
    model = MemoryModel(known("llama-3.1-8b")[0], TensorHeaders(), MemoryOptions())
    assert refusal(model).note == "there are no tensor headers"


def test_options_reach_the_exact_rules() -> None:
    plainly = needed(plain("llama-3.1-8b"))
    halved = needed(with_options("llama-3.1-8b", kv_cache_dtype="fp8"))
    assert gib(halved, "kv_cache") == pytest.approx(gib(plainly, "kv_cache") / 2)
    shorter = {"max_position_embeddings": 4096}
    assert "(4096)" in refusal(with_options("llama-3.1-8b", overrides=shorter)).note


LMCACHED, OFFLOADED = ("LMCacheConnectorV1",), ("OffloadingConnector",)


@pytest.mark.parametrize(
    ("connectors", "use", "kept"),
    [
        ((), {}, True),
        (LMCACHED, {}, False),
        (LMCACHED, {"device_type": "xpu"}, True),  # it is left out there
        (OFFLOADED, {}, True),
        ((*OFFLOADED, *LMCACHED), {}, False),
        (OFFLOADED, {"versions": ("0.21.0",)}, False),
        (OFFLOADED, {"versions": ("0.32.0", "")}, True),
    ],
)
def test_without_the_hybrid_manager_windows_keep_all_tokens_and_states_are_refused(
    connectors: tuple[str, ...], use: dict[str, Any], kept: bool
) -> None:
    windows, states = "gpt-oss-20b-bf16", "qwen3-next-80b-a3b"
    one = gib(
        needed(with_options(windows, connectors=connectors), tokens=100_000, **use), "kv_cache"
    )
    other = with_options(windows, hybrid_kv_cache_manager=kept)
    assert one == gib(needed(other, tokens=100_000, **use), "kv_cache")
    query = MemoryQuery(total=141 * GIB, tokens=8192, tensor=4, **use)
    found = with_options(states, connectors=connectors).need(query)
    assert isinstance(found, Need) is kept
    assert kept or "extended_kv_cache" in str(found)


def test_a_context_beyond_the_models_is_counted_where_vllm_is_told_to_take_it() -> None:
    env = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    config, headers = known("llama-3.1-8b")
    spec = a_spec(engine={"env": env, "args": ["--max-model-len=200000"]})
    need = needed(memory_model(spec, a_model(config, headers=headers), a_profile()), tokens=200_000)
    # 32 layers of 8 heads, 128 wide, keys and values of 2 bytes.
    assert need.term("kv_cache").bytes == (200_000 + 16) * 32 * 8 * 128 * 2 * 2  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["gemma-3-27b-text", "llama-3.1-8b", "qwen3-next-80b-a3b"])
def test_a_vocabulary_that_is_not_stated_has_a_row_for_each_token(name: str) -> None:
    config, headers = known(name)
    silent = {key: value for key, value in config.items() if key != "vocab_size"}
    options = MemoryOptions.model_validate({"lora": {}})
    found = needed(MemoryModel(silent, headers, options), tensor=2)
    assert found == needed(with_options(name, lora={}), tensor=2)


def test_what_cannot_be_estimated_can_be_stated() -> None:
    config, known_headers = known("llama-3.1-8b")
    config = {key: value for key, value in config.items() if key != "vocab_size"}
    headers = TensorHeaders(
        (n, h.dtype, h.shape) for n, h in known_headers.items() if "embed_tokens" not in n
    )
    found = refusal(MemoryModel(config, headers, MemoryOptions()))
    assert found.note == (
        "no estimate of activation: the configuration does not say `vocab_size`;"
        " `memory.activation` states its bytes"
    )
    stated = MemorySpec.model_validate({"activation": GIB})
    assert (
        gib(needed(MemoryModel(config, headers, MemoryOptions(stated=stated))), "activation") == 1
    )


@pytest.mark.parametrize("name", ["vision_tower.patch.weight", "mlp1.1.weight"])
def test_without_pictures_and_sound_their_weights_are_not_made(name: str) -> None:
    config, headers = known("llama-3.1-8b")
    tower = (name, "BF16", (1000, 1000))
    more = TensorHeaders([*((n, h.dtype, h.shape) for n, h in headers.items()), tower])
    text = MemoryModel(config, more, MemoryOptions(language_model_only=True))
    without = weights_of(plain("llama-3.1-8b"))
    assert weights_of(text) == without
    assert weights_of(MemoryModel(config, more, MemoryOptions())) == without + 2_000_000


@pytest.mark.parametrize(
    ("absent", "version", "left"),
    [
        (("audio", "image", "video"), "0.26.0", ""),
        (("image", "video"), "0.32.0", "hearing joint"),
        (("audio",), "0.32.0", "sight joint"),
        (("image",), "0.32.0", "sight hearing joint"),
        (("audio", "image", "video"), "0.25.1", "sight hearing joint"),
        (("audio", "image", "video"), "", "sight hearing joint"),
    ],
)
def test_an_encoder_whose_inputs_no_request_may_have_is_not_made(
    absent: tuple[str, ...], version: str, left: str
) -> None:
    config, headers = known("llama-3.1-8b")
    parts = {
        "sight": ("visual.patch.weight", 1000),
        "hearing": ("audio_tower.conv1.weight", 2000),
        "joint": ("multi_modal_projector.linear.weight", 3000),
    }
    towers = [(name, "BF16", (width, 1000)) for name, width in parts.values()]
    more = TensorHeaders([*((n, h.dtype, h.shape) for n, h in headers.items()), *towers])
    model = MemoryModel(config, more, MemoryOptions(absent=absent))
    found = weights_of(model, versions=(version,)) - weights_of(plain("llama-3.1-8b"))
    assert found == sum(2000 * parts[part][1] for part in left.split())


def test_sound_alone_keeps_what_joins_it_to_the_model() -> None:
    config, headers = known("llama-3.1-8b")
    tower = ("audio_tower.conv1.weight", "BF16", (1000, 1000))
    joint = ("multi_modal_projector.linear.weight", "BF16", (1000, 1000))
    more = TensorHeaders([*((n, h.dtype, h.shape) for n, h in headers.items()), tower, joint])
    model = MemoryModel(config, more, MemoryOptions(absent=("image", "video")))
    assert weights_of(model) - weights_of(plain("llama-3.1-8b")) == 4_000_000


def test_weights_are_an_estimate_where_the_split_of_an_encoder_is_not_known() -> None:
    config, headers = known("llama-3.1-8b")
    tower = ("vision_tower.mystery.weight", "BF16", (1000, 1000))
    more = TensorHeaders([*((n, h.dtype, h.shape) for n, h in headers.items()), tower])
    model, without = MemoryModel(config, more, MemoryOptions()), plain("llama-3.1-8b")
    for ranks, exact in ((1, True), (2, False)):
        term = needed(model, tensor=ranks).term("weights")
        assert term
        assert (term.bytes - weights_of(without, tensor=ranks), term.exact) == (2_000_000, exact)
        assert ("vision_tower.mystery counts whole" in term.reason) is not exact


def test_an_encoder_that_ranks_do_not_divide_is_whole_on_each() -> None:
    config, headers = known("llama-3.1-8b")
    tower = ("visual.blocks.0.attn.qkv.weight", "BF16", (3000, 1000))
    more = TensorHeaders([*((n, h.dtype, h.shape) for n, h in headers.items()), tower])
    without = weights_of(plain("llama-3.1-8b"), tensor=4)
    for mode, size in (("data", 6_000_000), ("weights", 1_500_000)):
        spec = a_spec(engine={"args": [f"--mm-encoder-tp-mode={mode}"]})
        model = memory_model(spec, a_model(config, headers=more), a_profile())
        assert weights_of(model, tensor=4) == without + size


def test_a_given_cache_is_taken_as_it_is() -> None:
    need = needed(with_options("llama-3.1-8b", kv_bytes=3 * GIB))
    assert gib(need, "kv_cache") == 3
    found = refusal(with_options("llama-3.1-8b", kv_bytes=GIB))
    assert found.reason is Reason.REJECTED
    assert "512 blocks, one of them held back; a request of 8192 tokens takes 512" in found.note


@pytest.mark.parametrize(
    ("name", "spreads"), [("qwen3-8b", False), ("qwen3-30b-a3b", False), ("qwen3-30b-a3b", True)]
)
def test_a_draft_model_is_counted_with_its_cache(name: str, spreads: bool) -> None:
    small, tensors = known("qwen3-0.6b")
    draft = a_model(small, headers=tensors)
    config, headers = known(name)
    options = MemoryOptions.model_validate(
        {"draft": {"model": "small"}, "enable_expert_parallel": spreads}
    )
    need = needed(MemoryModel(config, headers, options, draft=draft), tokens=40960)
    term = need.term("draft")
    assert term
    assert term.bytes / GIB == pytest.approx(1.11 + 4.375, abs=0.01)
    assert not term.exact


def test_a_draft_model_whose_split_is_not_known_counts_whole_on_each_rank() -> None:
    config, headers = known("qwen3-8b")
    eagle = {**known("qwen3-0.6b")[0], "num_hidden_layers": 1}
    options = MemoryOptions.model_validate({"draft": {"method": "eagle3", "model": "eagle"}})
    drafts = a_model(eagle, weights=WeightSummary(family="bin", bytes=GIB))
    need = needed(MemoryModel(config, headers, options, draft=drafts), tensor=2)
    term = need.term("draft")
    assert term
    # 8 kv heads over 2 ranks, 128 wide, keys and values of 2 bytes, 8192 tokens.
    assert term.bytes == GIB + 4 * 128 * 2 * 2 * 8192
    assert "as stored" in term.reason


def test_a_draft_model_of_which_nothing_is_known_is_refused() -> None:
    config, headers = known("qwen3-8b")
    options = MemoryOptions.model_validate({"draft": {"method": "eagle3", "model": "eagle"}})
    unknown = WeightSummary(family="bin", bytes=0)
    for draft in (None, a_model(known("qwen3-0.6b")[0], weights=unknown)):
        assert refusal(MemoryModel(config, headers, options, draft=draft)).reason is (
            Reason.UNKNOWN
        )


def test_on_cpu_a_draft_model_takes_ram_and_shares_the_cache() -> None:
    config, headers = known("qwen3-0.6b")
    draft = a_model(config, headers=headers)
    options = MemoryOptions.model_validate({"draft": {"model": "the same"}})
    alone = plain("qwen3-0.6b").cpu_need(tokens=4096, concurrency=8)
    both = MemoryModel(config, headers, options, draft=draft).cpu_need(tokens=4096, concurrency=8)
    assert isinstance(alone, CpuNeed)
    assert isinstance(both, CpuNeed)
    sizes = {term.name: round(term.bytes / GIB, 2) for term in both.terms}
    assert sizes["draft"] == sizes["weights"] == 1.11
    assert (alone.cache_bytes, both.cache_bytes) == (4 * GIB, 8 * GIB)


@pytest.mark.parametrize("draft", [{"method": "ngram"}, None])
def test_looking_proposals_up_takes_no_memory(draft: dict[str, str] | None) -> None:
    assert needed(with_options("llama-3.1-8b", draft=draft)).term("draft") is None


def test_a_stated_draft_is_taken() -> None:
    stated = MemorySpec.model_validate({"draft": "2GiB"})
    options = {"draft": {"method": "eagle3"}, "stated": stated}
    assert gib(needed(with_options("llama-3.1-8b", **options)), "draft") == 2


def test_drafts_beside_a_recurrent_state_are_not_known() -> None:
    model = with_options("qwen3-next-80b-a3b", draft={"method": "ngram"})
    assert refusal(model, tensor=4).reason is Reason.UNKNOWN


def test_on_cpu_the_ram_is_weights_cache_and_processes() -> None:
    found = plain("qwen3-0.6b").cpu_need(tokens=4096, concurrency=8)
    assert isinstance(found, CpuNeed)
    sizes = {term.name: round(term.bytes / GIB, 2) for term in found.terms}
    # 8 x 32 blocks of 128 tokens and one more, 112 KiB a token, in whole GiB.
    assert sizes == {"weights": 1.11, "kv_cache": 4, "activation": 0.19, "processes": 2.5}
    assert found.cache_bytes == 4 * GIB
    assert (found.batch.tokens, found.batch.seqs) == (2048, 128)
    assert found.ram == sum(term.bytes for term in found.terms)


def test_the_model_of_a_spec_has_its_headers_its_files_and_its_mode() -> None:
    config, headers = known("qwen3-0.6b")
    model = memory_model(
        a_spec(engine={"args": ["--max-num-seqs=8"]}),
        a_model(config, headers=headers),
        a_profile(mode=Mode.EMBEDDING),
    )
    assert model.options.max_seqs == 8
    assert model.options.runner == "pooling"
    assert weights_of(model) == weights_of(plain("qwen3-0.6b"))


def test_the_model_of_a_spec_has_its_adapters_and_its_draft_model() -> None:
    config, headers = known("qwen3-0.6b")
    spec = a_spec(
        lora=[{"name": "poet", "source": "hf://org/poet"}],
        speculative={"method": "draft_model", "tokens": 2, "model": "hf://org/small"},
    )
    adapter, draft = assets_of(spec)[1:]
    companions = (
        a_companion(adapter, config={"r": 30}),
        a_companion(draft, config=config, headers=headers),
    )
    resolved = a_model(config, headers=headers, companions=companions)
    need = needed(memory_model(spec, resolved, a_profile()))
    lora, drafts = need.term("lora"), need.term("draft")
    assert lora
    assert "1 adapters of rank 32" in lora.reason
    assert drafts
    assert drafts.bytes > GIB


def test_a_header_of_an_unknown_type_is_refused() -> None:
    config, _ = known("llama-3.1-8b")
    headers = {"model.norm.weight": TensorHeader(dtype="F3", shape=(4096,))}
    model = MemoryModel(config, headers, MemoryOptions(dtype="bfloat16"))
    assert weights_of(model) == 8192, "vLLM casts what it does not keep"
