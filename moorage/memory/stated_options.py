"""The engine settings that affect memory, as a spec states them.

The spec may use any spelling of the engine's arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from moorage.common.failures import Cause, Failure
from moorage.memory.option_names import (
    DRAFT_METHODS,
    EVERY_TARGET,
    LARGEST_RATIO,
    LMCACHE,
    RATIOS,
    SGLANG,
    UNCUT,
    VLLM,
    OptionNames,
)
from moorage.memory.options import (
    DraftOptions,
    KVDtype,
    LoraOptions,
    MambaMode,
    MemoryOptions,
    Runner,
    SsmDtype,
    allowed_rank,
)
from moorage.models.context import allows_longer
from moorage.models.mode import POOLING
from moorage.models.pin import AssetRole
from moorage.models.rope import rope_rule
from moorage.models.source import Companion
from moorage.spec import EngineName, Mode, ModelSpec
from moorage.spec.arguments import EngineArguments

CACHED_TOKENS = 32_768
"""Least tokens that the KV cache holds if the spec says `concurrency: auto`."""

ATTENTION_DATA = ("--attn-dp-size", "--attention-data-parallel-size", "--enable-dp-attention")
"""SGLang's names of data parallelism for the attention alone."""

EXPERT_RANKS = ("--ep-size", "--ep", "--expert-parallel-size")
"""SGLang's names of the number of ranks over which whole experts are spread."""

UNCOVERED = {
    "--cpu-offload-gb": "keeps a part of the weights in RAM",
    "--decode-context-parallel-size": "spreads the KV cache over tensor-parallel ranks",
    "--prefill-context-parallel-size": "spreads a prompt over ranks",
    "--kv-cache-dtype-skip-layers": "mixes element types in the KV cache",
    "--enable-eplb": "adds redundant experts",
    **dict.fromkeys(ATTENTION_DATA, "gives each rank more of the attention"),
}
"""Arguments whose effect on memory the rules do not cover, with the effect."""

UNSETTLED_RUNNER = (
    *("--compilation-config", "--distributed-executor-backend", "--ec-transfer-config"),
    *("--enable-dbo", "--enable-elastic-ep", "--enable-prompt-embeds", "--reasoning-config"),
    *("--enable-return-routed-experts", "--kv-sharing-fast-prefill", "--logits-processors"),
    *("--logprobs-mode", "--optimization-level", "--reasoning-parser"),
)
"""Arguments that may make vLLM 0.22 to 0.28 use its first model runner.

Source: `config/vllm.py:_get_v2_model_runner_unsupported_features`.
"""

PROFILES_GRAPHS = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
SECOND_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
"""Variables of vLLM, 0 or 1 (`envs.py`)."""

BATCH_INVARIANT = "VLLM_BATCH_INVARIANT"
"""Variable of vLLM, 0 or 1, which excludes kernels."""

LAYER_PARTITION = "VLLM_PP_LAYER_PARTITION"
"""Variable of vLLM with the layers of each pipeline stage (`distributed/utils.py`)."""

DTYPES = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16", "auto": ""}

COVERED_VALUES = {
    "--kv-cache-dtype": get_args(KVDtype),
    **dict.fromkeys((VLLM.state_dtype, SGLANG.state_dtype), get_args(SsmDtype)),
    "--mamba-cache-dtype": get_args(SsmDtype),
    "--mamba-cache-mode": get_args(MambaMode),
    "--dtype": tuple(DTYPES),
}


def memory_options(
    spec: ModelSpec, mode: Mode = Mode.AUTO, companions: Sequence[Companion] = ()
) -> MemoryOptions:
    """Read the options of a spec.

    Args:
        mode: The mode to serve, if the spec leaves it open.
        companions: Its companions as read; adapters give the ranks that the spec leaves open.

    Raises:
        Failure: `BAD_SPEC` when a value is malformed.
    """
    args, sglang = spec.engine.arguments, spec.engine.stated_name == EngineName.SGLANG
    names = SGLANG if sglang else VLLM
    return MemoryOptions(
        **_given(args, names),
        **_of_states(args, names),
        **_of_graphs(spec, names),
        **_of_sglang(args),
        throughput=args.value("--performance-mode") == "throughput",
        dtype=DTYPES.get(args.value("--dtype") or "auto", ""),
        quantization=args.value("--quantization") or "",
        attention_copies=any(map(args.states, ATTENTION_DATA)),
        kv_cache_dtype=_covered(args, "--kv-cache-dtype"),
        block_size=args.whole_number(names.block_size) or None,  # 0: vLLM chooses
        decode_context_parallel_size=_decode_ranks(args),
        absent=_absent(args),
        hybrid_kv_cache_manager=not args.switch("--disable-hybrid-kv-cache-manager"),
        connectors=_connectors(spec),
        runner=_runner(spec, mode),
        whole_towers=keeps_towers_whole(args),
        special_kernel=_special_kernel(spec),
        layer_partition=() if sglang else _partition(spec.engine.env),
        any_length=allows_longer(spec),
        extended=_extended(spec),
        rope=rope_rule(spec),
        overrides=args.json_object(names.overrides) or {},
        lora=_lora(spec, companions, names),
        draft=_draft(spec, names),
        uncovered=_uncovered(args),
        sglang=sglang,
        stated=spec.memory,
    )


def for_sglang(options: MemoryOptions) -> dict[str, Any]:
    """The changes to options that were read before `auto` came to SGLang: none has arguments."""
    changes: dict[str, Any] = {"sglang": True, "layer_partition": ()}
    if options.lora is None:
        return changes
    slots = options.lora.max_loras + SGLANG.slots_without_adapter
    return changes | {"lora": options.lora.model_copy(update={"max_loras": slots})}


def wanted_concurrency(spec: ModelSpec, tokens: int, encoder_tokens: int = 0) -> int:
    """Requests of `tokens` tokens that the KV cache must hold at once.

    Each request also keeps `encoder_tokens`.
    """
    if spec.concurrency != "auto":
        return spec.concurrency
    return max(1, -(-CACHED_TOKENS // (tokens + encoder_tokens)))


def keeps_towers_whole(args: EngineArguments) -> bool:
    """Whether ranks divide the images instead of the weights and heads of their encoder."""
    return args.value("--mm-encoder-tp-mode") == "data"


def _given(args: EngineArguments, names: OptionNames) -> dict[str, Any]:
    switches = {name: args.switch(flag) for name, flag in names.switches.items()}
    switches |= {name: False for name, flag in names.negations.items() if args.switch(flag)}
    numbers = {
        name: args.whole_number(flag)
        for name, flag in names.numbers.items()
        if args.value(flag) != UNCUT
    }
    if args.value(names.numbers["batched_tokens"]) == UNCUT:
        switches["chunked_prefill"] = False
    if any((args.whole_number(flag) or 1) > 1 for flag in EXPERT_RANKS):
        switches["enable_expert_parallel"] = True
    return {name: value for name, value in (numbers | switches).items() if value is not None}


def _of_states(args: EngineArguments, names: OptionNames) -> dict[str, Any]:
    return {
        "mamba_ssm_cache_dtype": _covered(args, names.state_dtype),
        "mamba_cache_dtype": _covered(args, "--mamba-cache-dtype"),
        "mamba_cache_mode": _covered(args, "--mamba-cache-mode"),
        "mamba_block_size": args.whole_number("--mamba-block-size") or None,
    }


def _of_graphs(spec: ModelSpec, names: OptionNames) -> dict[str, Any]:
    args, variables = spec.engine.arguments, spec.engine.env
    sizes = args.values(names.graph_sizes)
    return {
        "graph_sizes": None if sizes is None else len(sizes),
        "profiles_graphs": _flag(variables, PROFILES_GRAPHS),
        "second_runner": _flag(variables, SECOND_RUNNER),
        "unsettled_runner": any(map(args.states, UNSETTLED_RUNNER)),
    }


def _of_sglang(args: EngineArguments) -> dict[str, Any]:
    """SGLang's pools, and the ratios that the user states."""
    found: dict[str, Any] = {"one_pool": bool(args.switch("--disable-hybrid-swa-memory"))}
    for name, flag in RATIOS.items():
        text = args.value(flag)
        if text is None:
            continue
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = 0.0
        if not 0 < found[name] <= LARGEST_RATIO:
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {flag} {text[:60]} is no ratio",
                suggestion="State a number above 0.",
            )
    return found


def _absent(args: EngineArguments) -> tuple[str, ...]:
    """Kinds of input whose limit is 0, as a number or as the `count` of an object."""
    limits = args.json_object("--limit-mm-per-prompt") or {}
    counts = {
        kind: limit.get("count") if isinstance(limit, Mapping) else limit
        for kind, limit in limits.items()
    }
    return tuple(sorted(kind for kind, count in counts.items() if count == 0))


def _decode_ranks(args: EngineArguments) -> int:
    """Ranks that share a cache; with prefill-context ranks, they need not be tensor-parallel."""
    shares_prompts = (args.whole_number("--prefill-context-parallel-size") or 1) > 1
    ranks = args.whole_number("--decode-context-parallel-size")
    return 1 if shares_prompts else max(1, ranks or 1)


def _connectors(spec: ModelSpec) -> tuple[str, ...]:
    """vLLM's KV connectors; none where the user says whether the hybrid manager is on.

    Source: `config/vllm.py:_post_init_kv_transfer_config` of vLLM 0.32.
    """
    args = spec.engine.arguments
    if args.switch("--disable-hybrid-kv-cache-manager") is not None:
        return ()
    if args.states("--kv-offloading-size"):
        native = args.value("--kv-offloading-backend") != "lmcache"
        return ("OffloadingConnector" if native else "LMCacheMPConnector",)
    content = args.json_object("--kv-transfer-config")
    if content is None:
        return (LMCACHE,) if spec.extended_kv_cache else ()
    more = content.get("kv_connector_extra_config")
    parts = more.get("connectors") if isinstance(more, Mapping) else None
    several = content.get("kv_connector") == "MultiConnector" and isinstance(parts, list)
    found = [part for part in parts or [] if isinstance(part, Mapping)] if several else [content]
    return tuple(str(part.get("kv_connector") or "") for part in found)


def _flag(variables: Mapping[str, str], name: str) -> bool | None:
    return variables[name] != "0" if name in variables else None


def _special_kernel(spec: ModelSpec) -> bool:
    """Whether the user chooses the kernel of experts, or narrows the choice."""
    args = spec.engine.arguments
    within = args.json_object("--kernel-config") or {}
    named = (args.value("--moe-backend"), within.get("moe_backend"))
    chosen = any(str(name or "auto").lower() != "auto" for name in named)
    return chosen or bool(_flag(spec.engine.env, BATCH_INVARIANT))


def _partition(variables: Mapping[str, str]) -> tuple[int, ...]:
    """The layers that the user gives each pipeline stage."""
    text = variables.get(LAYER_PARTITION)
    try:
        return tuple(map(int, text.split(","))) if text is not None else ()
    except ValueError:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.env.{LAYER_PARTITION}: {text!r:.60} is no list of numbers",
            suggestion="State the layers of each pipeline stage, such as `20,41`.",
        ) from None


def _covered(args: EngineArguments, flag: str) -> Any:
    value = args.value(flag)
    return value if value in COVERED_VALUES[flag] else "auto"


def _uncovered(args: EngineArguments) -> str:
    for flag, effect in UNCOVERED.items():
        if args.values(flag) is not None:
            return f"{flag} {effect}"
    for flag, covered in COVERED_VALUES.items():
        value = args.value(flag)
        if value is not None and value not in covered:
            return f"{flag} {value} is not covered"
    return ""


def _extended(spec: ModelSpec) -> bool:
    engine = spec.engine
    deprecated = engine.arguments.switch("--allow-deprecated-quantization")
    return bool(engine.image or engine.packages or deprecated)


def _runner(spec: ModelSpec, mode: Mode) -> Runner:
    requested = spec.engine.arguments.value("--runner")
    if requested in ("generate", "pooling"):
        return "generate" if requested == "generate" else "pooling"
    served = mode if spec.mode == Mode.AUTO else spec.mode
    return "pooling" if served in POOLING else "auto"


def _lora(
    spec: ModelSpec, companions: Sequence[Companion], names: OptionNames
) -> LoraOptions | None:
    """The LoRA options; the user's arguments take precedence, as in the launch."""
    args, later = spec.engine.arguments, spec.lora_updates
    is_users_own = args.switch("--enable-lora")
    if not (is_users_own or spec.lora or later):
        return None
    number = rank = 0
    if not is_users_own:
        # All adapters may be in one batch, including those loaded later.
        number = len(spec.lora) + (later.max if later else 0)
        real = {item.name: item.rank for item in companions if item.role == AssetRole.ADAPTER}
        ranks = [adapter.rank or real.get(adapter.name) or 0 for adapter in spec.lora]
        rank = max([*ranks, later.rank if later else 0])
        number += names.slots_without_adapter
    targets = args.values("--lora-target-modules")
    return LoraOptions(
        max_loras=args.whole_number(names.max_loras) or number or names.most_loras,
        max_rank=args.whole_number("--max-lora-rank")
        or allowed_rank(rank or LoraOptions().max_rank),
        targets=None if targets == EVERY_TARGET else targets,
        fully_sharded=bool(args.switch("--fully-sharded-loras")),
    )


def _draft(spec: ModelSpec, names: OptionNames) -> DraftOptions | None:
    """The drafting options; arguments take precedence over the field `speculative`."""
    args, wanted = spec.engine.arguments, spec.speculative
    content = args.json_object("--speculative-config") or {}
    method = args.value(names.draft_method) or content.get("method")
    method = DRAFT_METHODS.get(str(method), method)
    model = args.value(*names.draft_model) or content.get("model")
    number = args.whole_number(names.draft_steps) or content.get("num_speculative_tokens")
    if names.verified_tokens and (verified := args.whole_number(names.verified_tokens)):
        number = verified - 1
    if method or model:
        steps = number if isinstance(number, int) else 1
        return DraftOptions(method=str(method or ""), model=str(model or ""), tokens=steps)
    if wanted is None:
        return None
    return DraftOptions(method=wanted.method, model=wanted.model or "", tokens=wanted.tokens or 1)
