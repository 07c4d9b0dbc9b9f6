"""Reads the memory options of a spec, in every spelling of the engine's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from moorage.memory.options import (
    DraftOptions,
    KVDtype,
    LoraOptions,
    MemoryOptions,
    Runner,
    SsmDtype,
    allowed_rank,
)
from moorage.models.assets import AssetRole
from moorage.models.rope import rope_rule
from moorage.models.source import Companion
from moorage.spec import Mode, ModelSpec
from moorage.spec.arguments import EngineArguments

CACHED_TOKENS = 32_768
"""Tokens that the KV cache holds at least where the spec says `concurrency: auto`."""

POOLING = (Mode.EMBEDDING, Mode.RERANKING, Mode.CLASSIFICATION)

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


def memory_options(
    spec: ModelSpec, mode: Mode = Mode.AUTO, companions: Sequence[Companion] = ()
) -> MemoryOptions:
    """Read the options of a spec, in every writing of vLLM's arguments.

    Args:
        spec: What the user wrote.
        mode: What the model is served for, where the spec leaves it open.
        companions: Its adapters as they were read: they give ranks that the spec leaves open.

    Raises:
        Failure: `BAD_SPEC` when a value is malformed.
    """
    args = spec.engine.arguments
    sizes = args.values("--cudagraph-capture-sizes")
    return MemoryOptions(
        batched_tokens=args.whole_number("--max-num-batched-tokens"),
        max_seqs=args.whole_number("--max-num-seqs"),
        throughput=args.value("--performance-mode") == "throughput",
        chunked_prefill=args.switch("--enable-chunked-prefill"),
        dtype=DTYPES.get(args.value("--dtype") or "auto", ""),
        kv_cache_dtype=_one_of(args, "--kv-cache-dtype", get_args(KVDtype)),
        mamba_ssm_cache_dtype=_one_of(args, "--mamba-ssm-cache-dtype", get_args(SsmDtype)),
        enforce_eager=bool(args.switch("--enforce-eager")),
        graph_limit=args.whole_number("--max-cudagraph-capture-size"),
        graph_sizes=None if sizes is None else len(sizes),
        enable_expert_parallel=bool(args.switch("--enable-expert-parallel")),
        block_size=args.whole_number("--block-size") or None,  # 0: vLLM chooses
        kv_bytes=args.whole_number("--kv-cache-memory-bytes"),
        hybrid_kv_cache_manager=not args.switch("--disable-hybrid-kv-cache-manager"),
        enable_prefix_caching=args.switch("--enable-prefix-caching"),
        runner=_runner(spec, mode, args.value("--runner")),
        language_model_only=bool(args.switch("--language-model-only")),
        rope=rope_rule(spec),
        overrides=args.json_object("--hf-overrides") or {},
        lora=_lora(spec, companions, args),
        draft=_draft(args) or _drafts(spec),
        uncovered=_uncovered(args),
        stated=spec.memory,
    )


def wanted_concurrency(spec: ModelSpec, tokens: int) -> int:
    """Requests of `tokens` tokens that the KV cache must hold at once."""
    if spec.concurrency != "auto":
        return spec.concurrency
    return max(1, -(-CACHED_TOKENS // tokens))


def _one_of(args: EngineArguments, flag: str, known: Sequence[str]) -> Any:
    value = args.value(flag)
    return value if value in known else "auto"


def _runner(spec: ModelSpec, mode: Mode, requested: str | None) -> Runner:
    if requested in ("generate", "pooling"):
        return "generate" if requested == "generate" else "pooling"
    served = mode if spec.mode == Mode.AUTO else spec.mode
    return "pooling" if served in POOLING else "auto"


def _lora(
    spec: ModelSpec, companions: Sequence[Companion], args: EngineArguments
) -> LoraOptions | None:
    """The user's own numbers win, as in the launch."""
    if args.switch("--enable-lora"):
        number, rank = LoraOptions().max_loras, LoraOptions().max_rank
    elif spec.lora or spec.lora_updates:
        number, rank = _adapters(spec, companions)
    else:
        return None
    return LoraOptions(
        max_loras=args.whole_number("--max-loras") or number,
        max_rank=args.whole_number("--max-lora-rank") or rank,
        targets=args.values("--lora-target-modules"),
        fully_sharded=bool(args.switch("--fully-sharded-loras")),
    )


def _adapters(spec: ModelSpec, companions: Sequence[Companion]) -> tuple[int, int]:
    """Number and rank of the spec's adapters and of later ones; all may be in one batch."""
    later = spec.lora_updates
    real = {item.name: item.rank for item in companions if item.role == AssetRole.ADAPTER}
    ranks = [adapter.rank or real.get(adapter.name) or 0 for adapter in spec.lora]
    rank = max([*ranks, later.rank if later else 0]) or LoraOptions().max_rank
    return len(spec.lora) + (later.max if later else 0), allowed_rank(rank)


def _drafts(spec: ModelSpec) -> DraftOptions | None:
    wanted = spec.speculative
    if wanted is None:
        return None
    return DraftOptions(method=wanted.method, model=wanted.model or "", tokens=wanted.tokens or 1)


def _draft(args: EngineArguments) -> DraftOptions | None:
    content = args.json_object("--speculative-config") or {}
    method = args.value("--spec-method") or content.get("method")
    model = args.value("--spec-model") or content.get("model")
    number = args.whole_number("--spec-tokens") or content.get("num_speculative_tokens")
    if not (method or model):
        return None
    steps = number if isinstance(number, int) else 1
    return DraftOptions(method=str(method or ""), model=str(model or ""), tokens=steps)


def _uncovered(args: EngineArguments) -> str:
    for flag, effect in UNCOVERED.items():
        if args.values(flag) is not None:
            return f"{flag} {effect}"
    checks = {"--kv-cache-dtype": get_args(KVDtype), "--mamba-ssm-cache-dtype": get_args(SsmDtype)}
    for flag, known in {**checks, "--dtype": tuple(DTYPES)}.items():
        value = args.value(flag)
        if value is not None and value not in known:
            return f"{flag} {value} is not covered"
    return ""
