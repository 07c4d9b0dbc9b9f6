"""The memory settings that a spec and its engine arguments ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from moorage.arguments import (
    argument,
    arguments,
    has_argument,
    json_argument,
    switch,
    user_tokens,
    whole_number,
)
from moorage.models.memory.settings import KVDtype, MemorySettings
from moorage.spec import MemorySpec, Mode, ModelSpec
from moorage.values import Value

TOKENS_AT_ONCE = 32_768
"""Tokens that the KV cache holds at least where the spec says `concurrency: auto`."""

POOLING = (Mode.EMBEDDING, Mode.RERANKING)

UNCOVERED = {
    "--quantization": "quantises the weights while they are loaded",
    "--cpu-offload-gb": "keeps a part of the weights in RAM",
    "--decode-context-parallel-size": "spreads the KV cache over tensor-parallel ranks",
    "--prefill-context-parallel-size": "spreads a prompt over ranks",
    "--kv-cache-dtype-skip-layers": "mixes element types in the KV cache",
    "--enable-eplb": "adds redundant experts",
}
"""Arguments whose effect on memory is not covered by the rules here."""

DTYPES = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16", "auto": ""}
SsmDtype = Literal["auto", "float32", "float16", "bfloat16"]
Runner = Literal["auto", "generate", "pooling"]


class LoraOptions(Value):
    """Buffers for adapters, which vLLM makes at start, whatever is loaded later.

    Attributes:
        max_loras: Adapters in one batch.
        max_rank: Largest rank of an adapter.
        targets: Names of the layers that can be adapted; None = all that vLLM can adapt.
        fully_sharded: Whether both factors are spread over the ranks.
    """

    max_loras: int = 1
    max_rank: int = 16
    targets: tuple[str, ...] | None = None
    fully_sharded: bool = False


class DraftOptions(Value):
    """Speculative decoding.

    Attributes:
        method: `ngram`, `eagle3`, `mtp`, ...; empty when only a model is named.
        model: The draft model; empty = none of its own.
        tokens: Tokens proposed in each step.
    """

    method: str = ""
    model: str = ""
    tokens: int = 1


class MemoryOptions(Value):
    """What a spec says that decides about memory; None = vLLM's choice.

    Attributes:
        batched_tokens: Tokens of one scheduler step.
        max_seqs: Requests of one scheduler step.
        throughput: Whether vLLM's own choice of both is doubled (`--performance-mode`).
        chunked_prefill: Whether long prompts are cut into steps.
        dtype: Element type of the parameters; empty = the model's.
        kv_cache_dtype: Element type of the KV cache.
        ssm_dtype: Element type of the recurrent state.
        enforce_eager: Whether no CUDA graphs are captured.
        graph_limit: Largest batch for which a graph is captured.
        graph_sizes: Number of graphs.
        expert_parallel: Whether whole experts are spread over the ranks.
        block_size: Tokens of a KV block.
        kv_bytes: Bytes of the KV cache on each rank; None = as many as the requests need.
        hybrid_manager: Whether local layers may keep less than full ones.
        prefix_caching: Whether prefixes are cached.
        runner: `auto`, `generate` or `pooling`.
        language_model_only: Whether the parts for pictures and sound are left out.
        overrides: Keys of config.json that are replaced (`--hf-overrides`).
        lora: Adapters; None = none.
        draft: Speculative decoding; None = none.
        uncovered: Why these options are not covered by the rules; empty = they are.
        stated: What the spec states instead of an estimate.
    """

    batched_tokens: int | None = None
    max_seqs: int | None = None
    throughput: bool = False
    chunked_prefill: bool | None = None
    dtype: str = ""
    kv_cache_dtype: KVDtype = "auto"
    ssm_dtype: SsmDtype = "auto"
    enforce_eager: bool = False
    graph_limit: int | None = None
    graph_sizes: int | None = None
    expert_parallel: bool = False
    block_size: int | None = None
    kv_bytes: int | None = None
    hybrid_manager: bool = True
    prefix_caching: bool | None = None
    runner: Runner = "auto"
    language_model_only: bool = False
    overrides: dict[str, Any] = {}
    lora: LoraOptions | None = None
    draft: DraftOptions | None = None
    uncovered: str = ""
    stated: MemorySpec = MemorySpec()

    def settings(
        self, tensor: int, pipeline: int, tokens: int, batched: int, block: int | None = None
    ) -> MemorySettings:
        """The settings of the exact rules.

        Args:
            tensor: Tensor-parallel ranks.
            pipeline: Pipeline stages.
            tokens: `max_model_len`.
            batched: Tokens of one scheduler step.
            block: Tokens of a KV block where the options leave it open; None = vLLM's on CUDA.
        """
        return MemorySettings(
            tensor_parallel_size=tensor,
            pipeline_parallel_size=pipeline,
            enable_expert_parallel=self.expert_parallel,
            max_model_len=tokens,
            max_num_batched_tokens=batched,
            kv_cache_dtype=self.kv_cache_dtype,
            hybrid_kv_cache_manager=self.hybrid_manager,
            enable_prefix_caching=self.prefix_caching,
            mamba_ssm_cache_dtype=self.ssm_dtype,
            block_size=self.block_size or block,
            runner=self.runner,
        )

    def applied_to(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """A configuration as the engine sees it, with what the arguments replace."""
        changed = dict(config)
        for key, value in self.overrides.items():
            below = changed.get(key)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = {**below, **value}
            changed[key] = value
        if self.dtype:
            changed["torch_dtype"] = self.dtype
        return changed


def memory_options(spec: ModelSpec, mode: Mode = Mode.AUTO) -> MemoryOptions:
    """Read the options of a spec, in every writing of vLLM's arguments.

    Args:
        spec: What the user wrote.
        mode: What the model is served for, where the spec leaves it open.

    Raises:
        Failure: `BAD_SPEC` when a value is malformed.
    """
    tokens = user_tokens(spec.engine.args)
    sizes = arguments(tokens, "--cudagraph-capture-sizes")
    return MemoryOptions(
        batched_tokens=whole_number(tokens, "--max-num-batched-tokens"),
        max_seqs=whole_number(tokens, "--max-num-seqs"),
        throughput=argument(tokens, "--performance-mode") == "throughput",
        chunked_prefill=switch(tokens, "--enable-chunked-prefill"),
        dtype=DTYPES.get(argument(tokens, "--dtype") or "auto", ""),
        kv_cache_dtype=_known(tokens, "--kv-cache-dtype", get_args(KVDtype)),
        ssm_dtype=_known(tokens, "--mamba-ssm-cache-dtype", get_args(SsmDtype)),
        enforce_eager=bool(switch(tokens, "--enforce-eager")),
        graph_limit=whole_number(tokens, "--max-cudagraph-capture-size"),
        graph_sizes=None if sizes is None else len(sizes),
        expert_parallel=bool(switch(tokens, "--enable-expert-parallel") or "-ep" in tokens),
        block_size=whole_number(tokens, "--block-size"),
        kv_bytes=whole_number(tokens, "--kv-cache-memory-bytes", "--kv-cache-memory"),
        hybrid_manager=not switch(tokens, "--disable-hybrid-kv-cache-manager"),
        prefix_caching=switch(tokens, "--enable-prefix-caching"),
        runner=_runner(spec, mode, argument(tokens, "--runner")),
        language_model_only=bool(switch(tokens, "--language-model-only")),
        overrides=json_argument(tokens, "--hf-overrides") or {},
        lora=_lora(tokens),
        draft=_draft(tokens),
        uncovered=_uncovered(tokens),
        stated=spec.memory,
    )


def wanted_concurrency(spec: ModelSpec, tokens: int) -> int:
    """Requests of `tokens` tokens that the KV cache must hold at once."""
    if spec.concurrency != "auto":
        return spec.concurrency
    return max(1, -(-TOKENS_AT_ONCE // tokens))


def _known(tokens: Sequence[str], flag: str, known: Sequence[str]) -> Any:
    value = argument(tokens, flag)
    return value if value in known else "auto"


def _runner(spec: ModelSpec, mode: Mode, asked: str | None) -> Runner:
    if asked in ("generate", "pooling"):
        return "generate" if asked == "generate" else "pooling"
    served = mode if spec.mode == Mode.AUTO else spec.mode
    return "pooling" if served in POOLING else "auto"


def _lora(tokens: Sequence[str]) -> LoraOptions | None:
    if not switch(tokens, "--enable-lora"):
        return None
    return LoraOptions(
        max_loras=whole_number(tokens, "--max-loras") or 1,
        max_rank=whole_number(tokens, "--max-lora-rank") or 16,
        targets=arguments(tokens, "--lora-target-modules"),
        fully_sharded=bool(switch(tokens, "--fully-sharded-loras")),
    )


def _draft(tokens: Sequence[str]) -> DraftOptions | None:
    content = json_argument(tokens, "--speculative-config", "-sc") or {}
    method = argument(tokens, "--spec-method") or content.get("method")
    model = argument(tokens, "--spec-model") or content.get("model")
    number = whole_number(tokens, "--spec-tokens") or content.get("num_speculative_tokens")
    if not (method or model):
        return None
    steps = number if isinstance(number, int) else 1
    return DraftOptions(method=str(method or ""), model=str(model or ""), tokens=steps)


def _uncovered(tokens: Sequence[str]) -> str:
    for flag, effect in UNCOVERED.items():
        if has_argument(tokens, flag) or (flag == "--quantization" and argument(tokens, "-q")):
            return f"{flag} {effect}"
    checks = {"--kv-cache-dtype": get_args(KVDtype), "--mamba-ssm-cache-dtype": get_args(SsmDtype)}
    for flag, known in {**checks, "--dtype": tuple(DTYPES)}.items():
        value = argument(tokens, flag)
        if value is not None and value not in known:
            return f"{flag} {value} is not covered"
    return ""
