"""The engines' names of the options that affect memory, by their field of `MemoryOptions`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OptionNames:
    """Names of one engine.

    Attributes:
        numbers: Options with a number; an omitted option keeps the default.
        switches: Options that set a field to what they say.
        negations: Options that switch a field off.
        graph_sizes: Batch sizes for which graphs are captured.
        state_dtype: Element type of the recurrent state.
        block_size: Tokens of a block of the cache.
        overrides: Keys of config.json that are replaced.
        max_loras: Adapters in one batch.
        most_loras: Its default.
        slots_without_adapter: Slots of a batch for requests that name no adapter.
        draft_method, draft_model: Speculative decoding.
        draft_steps: Tokens that are drafted.
        verified_tokens: Tokens that are verified at once, one more than are drafted.
    """

    numbers: Mapping[str, str]
    switches: Mapping[str, str]
    negations: Mapping[str, str]
    graph_sizes: str
    state_dtype: str
    block_size: str
    overrides: str
    max_loras: str
    most_loras: int
    slots_without_adapter: int
    draft_method: str
    draft_model: tuple[str, ...]
    draft_steps: str
    verified_tokens: str = ""


VLLM = OptionNames(
    numbers={
        "batched_tokens": "--max-num-batched-tokens",
        "max_seqs": "--max-num-seqs",
        "graph_limit": "--max-cudagraph-capture-size",
        "kv_bytes": "--kv-cache-memory-bytes",
    },
    switches={
        "chunked_prefill": "--enable-chunked-prefill",
        "enforce_eager": "--enforce-eager",
        "enable_expert_parallel": "--enable-expert-parallel",
        "enable_prefix_caching": "--enable-prefix-caching",
        "language_model_only": "--language-model-only",
    },
    negations={},
    graph_sizes="--cudagraph-capture-sizes",
    state_dtype="--mamba-ssm-cache-dtype",
    block_size="--block-size",
    overrides="--hf-overrides",
    max_loras="--max-loras",
    most_loras=1,
    slots_without_adapter=0,
    draft_method="--spec-method",
    draft_model=("--spec-model",),
    draft_steps="--spec-tokens",
)

SGLANG = OptionNames(
    numbers={
        "batched_tokens": "--chunked-prefill-size",
        "max_seqs": "--max-running-requests",
        "graph_limit": "--cuda-graph-max-bs-decode",
    },
    switches={
        "enforce_eager": "--disable-cuda-graph",
        "language_model_only": "--language-model-only",
    },
    negations={"enable_prefix_caching": "--disable-radix-cache"},
    graph_sizes="--cuda-graph-bs-decode",
    state_dtype="--mamba-ssm-dtype",
    block_size="--page-size",
    overrides="--json-model-override-args",
    max_loras="--max-loras-per-batch",
    most_loras=8,
    slots_without_adapter=1,
    draft_method="--speculative-algorithm",
    draft_model=("--speculative-draft-model-path", "--speculative-draft-model"),
    draft_steps="--speculative-num-steps",
    verified_tokens="--speculative-num-draft-tokens",
)
"""As of SGLang 0.5.23 (`arg_groups/fields`)."""

UNCUT = "-1"
"""SGLang's `--chunked-prefill-size` where prompts are not cut."""

EVERY_TARGET = ("all",)
"""SGLang's `--lora-target-modules` for all modules that it can adapt."""

DRAFT_METHODS = {
    "NGRAM": "ngram",
    "NEXTN": "mtp",
    "EAGLE": "eagle",
    "EAGLE3": "eagle3",
    "STANDALONE": "draft_model",
}
"""SGLang's algorithms by the names of `speculative.method`."""

RATIOS = {"window_ratio": "--swa-full-tokens-ratio", "state_ratio": "--mamba-full-memory-ratio"}
"""SGLang's ratios of a part of its cache to the rest."""

LARGEST_RATIO = 1000.0

LMCACHE = "LMCacheConnectorV1"
LMCACHE_TYPES = frozenset({"cuda", "rocm"})
"""The connector of the extended cache, and the accelerator types for which LMCache is built."""

HYBRID_CONNECTORS = frozenset(
    f"{name}Connector"
    for name in (
        *("DecodeBench", "ExampleHiddenStates", "HiSparse", "MoRIIO", "Mooncake", "MooncakeStore"),
        *("Nixl", "NixlPull", "NixlPush", "Offloading", "SimpleCPUOffload"),
    )
)
"""KV connectors with which vLLM 0.32 keeps its hybrid KV cache manager (`SupportsHMA`)."""

HYBRID_SINCE = "0.23.0"
"""First version that surely keeps it with them (pull request 41847); others turn it off."""
