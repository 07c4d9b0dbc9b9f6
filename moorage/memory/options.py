"""The engine settings that affect memory, read from a spec.

The spec may use any spelling of the engine's arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.memory.option_names import (
    DRAFT_METHODS,
    EVERY_TARGET,
    LARGEST_RATIO,
    RATIOS,
    SGLANG,
    UNCUT,
    VLLM,
    OptionNames,
)
from moorage.models.config import apply_overrides
from moorage.models.pin import AssetRole
from moorage.models.profile import POOLING
from moorage.models.rope import RopeRule, rope_rule
from moorage.models.source import Companion
from moorage.spec import EngineName, MemorySpec, Mode, ModelSpec
from moorage.spec.arguments import EngineArguments

Count = Annotated[int, Field(ge=1)]

Ratio = Annotated[float, Field(gt=0)]

KVDtype = Literal[
    "auto", "bfloat16", "float16", "float32", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"
]
SsmDtype = Literal["auto", "float32", "float16", "bfloat16"]
Runner = Literal["auto", "generate", "pooling"]


class CacheOptions(Value):
    """Settings that are independent of the placement, named after vLLM's flags.

    Attributes:
        enable_expert_parallel: Whether whole experts are spread over the ranks.
        kv_cache_dtype: Element type of the KV cache; `auto` = the checkpoint's, else the model's.
        hybrid_kv_cache_manager: Whether local layers may keep less than full layers.
        enable_prefix_caching: Whether prefixes are cached; None = vLLM's choice for the model.
        mamba_ssm_cache_dtype: Element type of the recurrent state; `auto` = the model's choice.
        block_size: Tokens of one KV block; None = 16.
        decode_context_parallel_size: Tensor-parallel ranks that share the KV cache of a request.
        runner: Whether the engine generates or pools; `auto` = by the architecture.
        sglang: Whether the engine is SGLang, whose cache follows rules of its own.
        one_pool: Whether its window layers keep all tokens, as full ones do.
        window_ratio: Else the tokens of a window layer for each one of a full layer.
        state_ratio: Bytes that it gives recurrent states for each byte of other layers.
    """

    enable_expert_parallel: bool = False
    kv_cache_dtype: KVDtype = "auto"
    hybrid_kv_cache_manager: bool = True
    enable_prefix_caching: bool | None = None
    mamba_ssm_cache_dtype: SsmDtype = "auto"
    block_size: Count | None = None
    decode_context_parallel_size: Count = 1
    runner: Runner = "auto"
    rope: RopeRule = RopeRule.HELD
    sglang: bool = False
    one_pool: bool = False
    window_ratio: Ratio = 0.8
    state_ratio: Ratio = 0.9


class MemorySettings(CacheOptions):
    """Settings of one engine, named after vLLM's flags.

    Attributes:
        max_model_len: Longest request in tokens; None = the model's own.
        refines_expert_blocks: Whether an expert's part may cut the blocks of its fp8 weights.
    """

    tensor_parallel_size: Count = 1
    pipeline_parallel_size: Count = 1
    data_parallel_size: Count = 1
    max_model_len: Count | None = None
    max_num_batched_tokens: Count = 8192
    refines_expert_blocks: bool = True
    kv_pool_bytes: Annotated[int, Field(ge=0)] = 20 * GIB

    @property
    def expert_ranks(self) -> int:
        """Ranks among which the experts of a layer are divided.

        Source: `fused_moe/config.py:flatten_tp_across_dp_and_pcp`.
        """
        return self.tensor_parallel_size * self.data_parallel_size

    @property
    def ranks_of_expert(self) -> int:
        """Ranks that share one expert."""
        return 1 if self.enable_expert_parallel else self.expert_ranks

    @property
    def keeps_shared_experts_whole(self) -> bool:
        """Whether each rank takes all of the shared experts, for a part of the tokens.

        Source: `config/parallel.py:use_sequence_parallel_moe`.
        """
        sizes = (self.tensor_parallel_size, self.data_parallel_size)
        return self.enable_expert_parallel and min(sizes) > 1


LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM accepts for `--max-lora-rank` (0.32, `config/lora.py`)."""


def allowed_rank(rank: int) -> int:
    """The smallest rank accepted by vLLM that is at least `rank`; `rank` itself if none is."""
    return next((step for step in LORA_RANKS if rank <= step), rank)


class LoraOptions(Value):
    """Buffers for adapters, which vLLM allocates at start, whatever it loads later.

    Attributes:
        max_loras: Adapters in one batch.
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
        method: `ngram`, `eagle3`, `mtp`, ...; empty if only a model is named.
        model: The draft model; empty = no separate model.
        tokens: Tokens proposed in each step.
    """

    method: str = ""
    model: str = ""
    tokens: int = 1

    @property
    def by_own_layers(self) -> bool:
        """Whether layers of the model itself draft: `mtp`, or its older names by model."""
        return self.method.endswith("mtp") and not self.model


class MemoryOptions(CacheOptions):
    """The settings of a spec that affect memory; None = vLLM's choice.

    Attributes:
        batched_tokens: Tokens of one scheduler step.
        max_seqs: Requests of one scheduler step.
        throughput: Whether vLLM doubles its own choice of these two (`--performance-mode`).
        chunked_prefill: Whether long prompts are cut into steps.
        dtype: Element type of the parameters; empty = the model's.
        quantization: Method of quantisation; empty = the checkpoint's.
        attention_copies: Whether fewer ranks share the attention than other layers (SGLang).
        graph_limit: Largest batch for which a graph is captured.
        graph_sizes: Number of batch sizes for which graphs are captured.
        profiles_graphs: Whether vLLM sets its estimate for graphs aside.
        second_runner: Whether vLLM uses its second model runner.
        unsettled_runner: Whether an argument may affect the choice of the runner.
        kv_bytes: Bytes of the KV cache on each rank; None = as many as the requests need.
        overrides: Keys of config.json that are replaced (`--hf-overrides`).
        uncovered: Why the rules do not cover these options; empty = they do.
        stated: Sizes that the spec states instead of estimates.
    """

    batched_tokens: int | None = None
    max_seqs: int | None = None
    throughput: bool = False
    chunked_prefill: bool | None = None
    dtype: str = ""
    quantization: str = ""
    attention_copies: bool = False
    enforce_eager: bool = False
    graph_limit: int | None = None
    graph_sizes: int | None = None
    profiles_graphs: bool | None = None
    second_runner: bool | None = None
    unsettled_runner: bool = False
    kv_bytes: int | None = None
    language_model_only: bool = False
    overrides: dict[str, Any] = {}
    lora: LoraOptions | None = None
    draft: DraftOptions | None = None
    uncovered: str = ""
    stated: MemorySpec = MemorySpec.defaults()

    def apply_to(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration as the engine sees it, with the overrides of the arguments."""
        changed = apply_overrides(config, self.overrides)
        if self.dtype:
            changed["torch_dtype"] = self.dtype
        return changed


CACHED_TOKENS = 32_768
"""Least tokens that the KV cache holds if the spec says `concurrency: auto`."""

ATTENTION_DATA = ("--attn-dp-size", "--attention-data-parallel-size", "--enable-dp-attention")
"""SGLang's names of data parallelism for the attention alone."""

EXPERT_RANKS = ("--ep-size", "--ep", "--expert-parallel-size")
"""SGLang's names of the number of ranks over which whole experts are spread."""

UNCOVERED = {
    "--quantization": "quantises the weights while they are loaded",
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

DTYPES = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16", "auto": ""}

COVERED_VALUES = {
    "--kv-cache-dtype": get_args(KVDtype),
    **dict.fromkeys((VLLM.state_dtype, SGLANG.state_dtype), get_args(SsmDtype)),
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
    sizes = args.values(names.graph_sizes)
    return MemoryOptions(
        **_given(args, names),
        throughput=args.value("--performance-mode") == "throughput",
        dtype=DTYPES.get(args.value("--dtype") or "auto", ""),
        quantization=args.value("--quantization") or "",
        attention_copies=any(map(args.states, ATTENTION_DATA)),
        kv_cache_dtype=_covered(args, "--kv-cache-dtype"),
        mamba_ssm_cache_dtype=_covered(args, names.state_dtype),
        graph_sizes=None if sizes is None else len(sizes),
        profiles_graphs=_flag(spec.engine.env, PROFILES_GRAPHS),
        second_runner=_flag(spec.engine.env, SECOND_RUNNER),
        unsettled_runner=any(map(args.states, UNSETTLED_RUNNER)),
        block_size=args.whole_number(names.block_size) or None,  # 0: vLLM chooses
        decode_context_parallel_size=_decode_ranks(args),
        hybrid_kv_cache_manager=not args.switch("--disable-hybrid-kv-cache-manager"),
        runner=_runner(spec, mode),
        rope=rope_rule(spec),
        overrides=args.json_object(names.overrides) or {},
        lora=_lora(spec, companions, names),
        draft=_draft(spec, names),
        uncovered=_uncovered(args),
        sglang=sglang,
        one_pool=bool(args.switch("--disable-hybrid-swa-memory")),
        **_ratios(args),
        stated=spec.memory,
    )


def for_sglang(options: MemoryOptions) -> dict[str, Any]:
    """The changes to options that were read before `auto` came to SGLang: none has arguments."""
    if options.lora is None:
        return {"sglang": True}
    slots = options.lora.max_loras + SGLANG.slots_without_adapter
    return {"sglang": True, "lora": options.lora.model_copy(update={"max_loras": slots})}


def wanted_concurrency(spec: ModelSpec, tokens: int, encoder_tokens: int = 0) -> int:
    """Requests of `tokens` tokens that the KV cache must hold at once.

    Each request also keeps `encoder_tokens`.
    """
    if spec.concurrency != "auto":
        return spec.concurrency
    return max(1, -(-CACHED_TOKENS // (tokens + encoder_tokens)))


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


def _ratios(args: EngineArguments) -> dict[str, Any]:
    """SGLang's ratios that the user states."""
    found = {}
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


def _decode_ranks(args: EngineArguments) -> int:
    """Ranks that share a cache; with prefill-context ranks, they need not be tensor-parallel."""
    shares_prompts = (args.whole_number("--prefill-context-parallel-size") or 1) > 1
    ranks = args.whole_number("--decode-context-parallel-size")
    return 1 if shares_prompts else max(1, ranks or 1)


def _flag(variables: Mapping[str, str], name: str) -> bool | None:
    return variables[name] != "0" if name in variables else None


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
