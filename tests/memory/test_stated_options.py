from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.memory.options import DraftOptions, LoraOptions
from moorage.memory.stated_options import memory_options, wanted_concurrency
from moorage.models.assets import assets_of
from moorage.spec import Mode
from tests.builders import a_companion, a_spec


def read(*args: str, **changes: Any) -> Any:
    return memory_options(a_spec(engine={"args": args}, **changes))


@pytest.mark.parametrize(
    "args",
    [
        ("--max-num-seqs", "32"),
        ("--max-num-seqs 32",),
        ("--max-num-seqs=32",),
        ("--max_num_seqs=32",),
        ("--max_num_seqs", "32"),
        ("--max-num-seqs = 32",),
        ("--max-num-seqs", "8", "--max-num-seqs=32"),
    ],
)
def test_every_writing_says_the_same(args: tuple[str, ...]) -> None:
    assert read(*args).max_seqs == 32


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        (("--max-num-batched-tokens=16k",), "batched_tokens", 16_000),
        (("--max-num-batched-tokens", "16K"), "batched_tokens", 16_384),
        (("--max-num-batched-tokens", "2.5k"), "batched_tokens", 2500),
        (("--performance-mode", "throughput"), "throughput", True),
        (("--no-enable-chunked-prefill",), "chunked_prefill", False),
        (("--dtype=half",), "dtype", "float16"),
        (("--dtype=auto",), "dtype", ""),
        (("--kv-cache-dtype fp8_e5m2",), "kv_cache_dtype", "fp8_e5m2"),
        (("--mamba-ssm-cache-dtype=float32",), "mamba_ssm_cache_dtype", "float32"),
        (("--mamba-cache-dtype=float32",), "mamba_cache_dtype", "float32"),
        (("--mamba-cache-mode=align",), "mamba_cache_mode", "align"),
        (("--mamba-block-size=512",), "mamba_block_size", 512),
        (("--enforce-eager",), "enforce_eager", True),
        (("--enforce-eager", "--no-enforce-eager"), "enforce_eager", False),
        (("--max-cudagraph-capture-size=64",), "graph_limit", 64),
        (("--cudagraph-capture-sizes", "1", "2", "4"), "graph_sizes", 3),
        (("--enable-expert-parallel",), "enable_expert_parallel", True),
        (("-ep",), "enable_expert_parallel", True),
        (("-dcp", "2"), "decode_context_parallel_size", 2),
        (("-dcp", "2", "-pcp", "2"), "decode_context_parallel_size", 1),
        (("-q", "fp8"), "quantization", "fp8"),
        (("--block-size=32",), "block_size", 32),
        (("--block-size=0",), "block_size", None),
        (("--kv-cache-memory-bytes=4G",), "kv_bytes", 4 * 2**30),
        (("--disable-hybrid-kv-cache-manager",), "hybrid_kv_cache_manager", False),
        (("--kv-offloading-size=8",), "connectors", ("OffloadingConnector",)),
        (
            ("--kv-offloading-size=8", "--kv-offloading-backend=lmcache"),
            "connectors",
            ("LMCacheMPConnector",),
        ),
        (("--kv-transfer-config", '{"kv_connector": "A"}'), "connectors", ("A",)),
        (
            (
                "--kv-transfer-config",
                '{"kv_connector": "MultiConnector",'
                ' "kv_connector_extra_config": {"connectors": [{"kv_connector": "A"}, {}]}}',
            ),
            "connectors",
            ("A", ""),
        ),
        (
            ("--kv-transfer-config.kv_connector=A", "--no-disable-hybrid-kv-cache-manager"),
            "connectors",
            (),
        ),
        (("--no-enable-prefix-caching",), "enable_prefix_caching", False),
        (("--runner=pooling",), "runner", "pooling"),
        (("--language-model-only",), "language_model_only", True),
        (("--limit-mm-per-prompt", '{"image": 0, "video": 2}'), "absent", ("image",)),
        (("--limit-mm-per-prompt", '{"video": {"count": 0}}'), "absent", ("video",)),
        (("--limit-mm-per-prompt.audio=0", "--limit-mm-per-prompt.image=1"), "absent", ("audio",)),
        (("--hf-overrides", '{"a": {"b": 1}}'), "overrides", {"a": {"b": 1}}),
        (("--hf-overrides.a.b=1",), "overrides", {"a": {"b": 1}}),
        (("--enable-lora",), "lora", LoraOptions()),
        (
            ("--enable-lora", "--max-loras=4", "--max-lora-rank=64", "--fully-sharded-loras"),
            "lora",
            LoraOptions(max_loras=4, max_rank=64, fully_sharded=True),
        ),
        (
            ("--enable-lora", "--lora-target-modules", "q_proj", "v_proj", "--max-loras=2"),
            "lora",
            LoraOptions(max_loras=2, targets=("q_proj", "v_proj")),
        ),
        (("--max-loras=4",), "lora", None),
        (
            ("--speculative-config", '{"method": "eagle3", "num_speculative_tokens": 3}'),
            "draft",
            DraftOptions(method="eagle3", tokens=3),
        ),
        (
            ("--spec-method=mtp", "--spec-tokens=2"),
            "draft",
            DraftOptions(method="mtp", tokens=2),
        ),
        (
            ("-sc.model", "org/draft", "-sc.num_speculative_tokens", "5"),
            "draft",
            DraftOptions(model="org/draft", tokens=5),
        ),
    ],
)
def test_each_argument_is_read(args: tuple[str, ...], field: str, value: object) -> None:
    assert getattr(read(*args), field) == value


@pytest.mark.parametrize(
    ("engine", "special"),
    [
        ({}, False),
        ({"args": ["--moe-backend=auto"]}, False),
        ({"args": ["--moe-backend=triton"]}, True),
        ({"args": ["--kernel-config.moe_backend=marlin"]}, True),
        ({"env": {"VLLM_BATCH_INVARIANT": "0"}}, False),
        ({"env": {"VLLM_BATCH_INVARIANT": "1"}}, True),
    ],
)
def test_the_user_may_choose_the_kernel_of_experts(engine: dict[str, Any], special: bool) -> None:
    assert memory_options(a_spec(engine=engine)).special_kernel is special


@pytest.mark.parametrize(
    ("name", "text", "layers"),
    [("vllm", "20,41", (20, 41)), ("vllm", None, ()), ("sglang", "20,41", ())],
)
def test_the_layers_of_each_stage_are_read_from_the_environment(
    name: str, text: str | None, layers: tuple[int, ...]
) -> None:
    env = {} if text is None else {"VLLM_PP_LAYER_PARTITION": text}
    assert memory_options(a_spec(engine={"name": name, "env": env})).layer_partition == layers


def test_layers_that_are_no_numbers_are_a_mistake_in_the_spec() -> None:
    spec = a_spec(engine={"env": {"VLLM_PP_LAYER_PARTITION": "20;41"}})
    with pytest.raises(Failure, match=r"engine\.env\.VLLM_PP_LAYER_PARTITION") as caught:
        memory_options(spec)
    assert caught.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize(
    ("engine", "extended"),
    [
        ({}, False),
        ({"image": "me/vllm:1"}, True),
        ({"packages": ["vllm-bnb-plugin"]}, True),
        ({"args": ["--allow-deprecated-quantization"]}, True),
    ],
)
def test_what_the_user_adds_may_extend_the_engine(engine: dict[str, Any], extended: bool) -> None:
    assert memory_options(a_spec(engine=engine)).extended is extended


def test_the_extended_cache_has_a_connector_unless_the_user_gives_another() -> None:
    given = ("--kv-transfer-config.kv_connector=A",)
    cache = {"extended_kv_cache": {"ram": "8GiB"}}
    assert read(**cache).connectors == ("LMCacheConnectorV1",)
    assert read(*given, **cache).connectors == ("A",)


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        (("--chunked-prefill-size=2048",), "batched_tokens", 2048),
        (("--chunked-prefill-size=-1",), "chunked_prefill", False),
        (("--chunked-prefill-size", "-1"), "chunked_prefill", False),
        (("--chunked-prefill-size", "-1"), "batched_tokens", None),
        (("--max-running-requests 16",), "max_seqs", 16),
        (("--disable-cuda-graph",), "enforce_eager", True),
        (("--cuda-graph-max-bs-decode=8",), "graph_limit", 8),
        (("--cuda-graph-bs-decode", "1", "2", "4"), "graph_sizes", 3),
        (("--disable-radix-cache",), "enable_prefix_caching", False),
        (("--mamba-ssm-dtype=float32",), "mamba_ssm_cache_dtype", "float32"),
        (("--page-size=64",), "block_size", 64),
        (("--json-model-override-args", '{"a": {"b": 1}}'), "overrides", {"a": {"b": 1}}),
        (("--enable-lora",), "lora", LoraOptions(max_loras=8)),
        (
            ("--enable-lora", "--max-loras-per-batch=4", "--lora-target-modules", "all"),
            "lora",
            LoraOptions(max_loras=4),
        ),
        (
            ("--speculative-algorithm=EAGLE3", "--speculative-draft-model-path", "org/draft"),
            "draft",
            DraftOptions(method="eagle3", model="org/draft"),
        ),
        (
            ("--speculative-algorithm=NEXTN", "--speculative-num-steps=3"),
            "draft",
            DraftOptions(method="mtp", tokens=3),
        ),
        (
            (
                "--speculative-algorithm=NEXTN",
                "--speculative-num-draft-tokens=16",
                "--speculative-num-steps=3",
            ),
            "draft",
            DraftOptions(method="mtp", tokens=15),
        ),
        (("--max-num-seqs=4",), "max_seqs", None),
    ],
)
def test_each_argument_of_sglang_is_read(args: tuple[str, ...], field: str, value: object) -> None:
    options = memory_options(a_spec(engine={"name": "sglang", "args": args}))
    assert getattr(options, field) == value


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("-dcp", "2"), "--decode-context-parallel-size spreads the KV cache"),
        (("-pcp=2",), "--prefill-context-parallel-size spreads a prompt"),
        (("--attn-dp-size", "8"), "--attn-dp-size gives each rank more"),
        (("--cpu_offload_gb=4",), "--cpu-offload-gb keeps"),
        (("--kv-cache-dtype=nvfp4",), "--kv-cache-dtype nvfp4 is not covered"),
        (("--dtype=float32",), "--dtype float32 is not covered"),
        (("--mamba-cache-dtype=fp8",), "--mamba-cache-dtype fp8 is not covered"),
        (("--max-num-seqs=4",), ""),
    ],
)
def test_what_the_rules_do_not_cover_is_said(args: tuple[str, ...], reason: str) -> None:
    assert read(*args).uncovered.startswith(reason)
    assert bool(read(*args).uncovered) is bool(reason)


@pytest.mark.parametrize(
    "args", [("--max-num-seqs=many",), ("--max-num-seqs=2.5K",), ("--hf-overrides=3",)]
)
def test_a_malformed_value_is_a_mistake_in_the_spec(args: tuple[str, ...]) -> None:
    with pytest.raises(Failure) as caught:
        read(*args)
    assert caught.value.cause is Cause.BAD_SPEC
    assert args[0].partition("=")[0] in caught.value.detail


@pytest.mark.parametrize(
    ("spec", "derived", "runner"),
    [
        ({}, Mode.COMPLETION, "auto"),
        ({}, Mode.EMBEDDING, "pooling"),
        ({"mode": "completion"}, Mode.EMBEDDING, "auto"),
        ({"mode": "reranking"}, Mode.COMPLETION, "pooling"),
    ],
)
def test_what_embeds_or_reranks_pools(spec: dict[str, str], derived: Mode, runner: str) -> None:
    assert memory_options(a_spec(**spec), derived).runner == runner


@pytest.mark.parametrize(
    ("spec", "tokens", "requests"),
    [({}, 131072, 1), ({}, 32768, 1), ({}, 8192, 4), ({}, 20000, 2), ({"concurrency": 7}, 100, 7)],
)
def test_the_cache_holds_32768_tokens_unless_the_spec_says_otherwise(
    spec: dict[str, int], tokens: int, requests: int
) -> None:
    assert wanted_concurrency(a_spec(**spec), tokens) == requests


def test_adapters_of_the_spec_count_as_if_they_were_arguments() -> None:
    adapters = [
        {"name": "a", "source": "file:///adapters/a", "rank": 20},
        {"name": "b", "source": "file:///adapters/b"},
    ]
    lora = memory_options(a_spec(lora=adapters)).lora
    assert lora is not None
    assert (lora.max_loras, lora.max_rank) == (2, 32)


def test_the_rank_that_an_adapter_has_counts_where_the_spec_states_none() -> None:
    spec = a_spec(lora=[{"name": "a", "source": "hf://org/a"}])
    companions = tuple(a_companion(asset, config={"r": 100}) for asset in assets_of(spec)[1:])
    lora = memory_options(spec, companions=companions).lora
    assert lora is not None
    assert (lora.max_loras, lora.max_rank) == (1, 128)
    stated = a_spec(lora=[{"name": "a", "source": "hf://org/a", "rank": 512}])
    lora = memory_options(stated, companions=companions).lora
    assert lora is not None
    assert lora.max_rank == 512


@pytest.mark.parametrize(
    ("adapters", "updates", "number", "rank"),
    [
        ([], {}, 4, 16),
        ([{"name": "a", "source": "file:///a", "rank": 8}], {"max": 2, "rank": 60}, 3, 64),
        ([{"name": "a", "source": "file:///a", "rank": 200}], {"max": 1}, 2, 256),
    ],
)
def test_room_for_later_adapters_counts(
    adapters: list[dict[str, object]], updates: dict[str, int], number: int, rank: int
) -> None:
    lora = memory_options(a_spec(lora=adapters, lora_updates=updates)).lora
    assert lora is not None
    assert (lora.max_loras, lora.max_rank) == (number, rank)


def test_drafts_of_the_spec_count_as_if_they_were_arguments() -> None:
    draft = memory_options(a_spec(speculative={"method": "ngram", "tokens": 3})).draft
    assert draft is not None
    assert (draft.method, draft.tokens, draft.model) == ("ngram", 3, "")
