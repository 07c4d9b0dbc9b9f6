"""The options of llama-server, as far as a spec may use them, in one table.

It is what `engine.args` is checked against, and what the launcher of the xllamacpp wheel reads.
Source: the list that llama.cpp generates of its own parser (`tools/server/README.md`, November
2026), and the fields of `CommonParams` in xllamacpp 2026.10.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.engines.schema.argument import Argument, Kind, ReservedOption, Rules, Schema
from moorage.engines.schema.check import judge
from moorage.engines.schema.convert import Problem
from moorage.spec.arguments import EngineArguments

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")


class ServerOption(NamedTuple):
    """One option of the server.

    Attributes:
        names: Its long name, then its others; a switch may have negative ones (`--no-...`).
        field: Path of its value in `CommonParams`; empty = the wheel's server has no such field.
    """

    names: tuple[str, ...]
    kind: Kind
    field: str = ""
    choices: tuple[str, ...] = ()


def _rows(kind: Kind, table: str, choices: tuple[str, ...] = ()) -> tuple[ServerOption, ...]:
    """Options of one kind: a line has the names, then the field behind a colon."""
    lines = (line.partition(":") for line in table.strip().splitlines())
    return tuple(
        ServerOption(tuple(names.split()), kind, field.strip(), choices)
        for names, _, field in lines
    )


OPTIONS: tuple[ServerOption, ...] = (
    *_rows(
        Kind.INTEGER,
        """
        --threads -t: cpuparams.n_threads
        --threads-batch -tb: cpuparams_batch.n_threads
        --prio: cpuparams.priority
        --poll: cpuparams.poll
        --ctx-size -c: n_ctx
        --n-predict -n --predict: n_predict
        --batch-size -b: n_batch
        --ubatch-size -ub: n_ubatch
        --keep: n_keep
        --yarn-orig-ctx: yarn_orig_ctx
        --n-cpu-moe -ncmoe:
        --main-gpu -mg: main_gpu
        --fit-ctx -fitc: fit_params_min_ctx
        --verbosity -lv --log-verbosity: verbosity
        --seed -s: sampling.seed
        --top-k: sampling.top_k
        --repeat-last-n: sampling.penalty_last_n
        --mirostat: sampling.mirostat
        --ctx-checkpoints -ctxcp --swa-checkpoints: n_ctx_checkpoints
        --checkpoint-min-step -cms: checkpoint_min_step
        --cache-ram -cram: cache_ram_mib
        --kv-unified-per-slot: kv_unified_per_slot
        --parallel -np: n_parallel
        --image-min-tokens: image_min_tokens
        --image-max-tokens: image_max_tokens
        --embd-normalize: embd_normalize
        --port: port
        --timeout -to: timeout_read timeout_write
        --sse-ping-interval: sse_ping_interval
        --threads-http: n_threads_http
        --cache-reuse: n_cache_reuse
        --reasoning-budget: sampling.reasoning_budget_tokens
        --sleep-idle-seconds: sleep_idle_seconds
        --spec-draft-n-max: speculative.draft.n_max
        --spec-draft-n-min: speculative.draft.n_min
        """,
    ),
    *_rows(
        Kind.NUMBER,
        """
        --rope-scale: rope_freq_scale
        --rope-freq-base: rope_freq_base
        --rope-freq-scale: rope_freq_scale
        --yarn-ext-factor: yarn_ext_factor
        --yarn-attn-factor: yarn_attn_factor
        --yarn-beta-slow: yarn_beta_slow
        --yarn-beta-fast: yarn_beta_fast
        --temp --temperature: sampling.temp
        --top-p: sampling.top_p
        --min-p: sampling.min_p
        --typical --typical-p: sampling.typ_p
        --repeat-penalty: sampling.penalty_repeat
        --presence-penalty: sampling.penalty_present
        --frequency-penalty: sampling.penalty_freq
        --dynatemp-range: sampling.dynatemp_range
        --dynatemp-exp: sampling.dynatemp_exponent
        --spec-draft-p-min --draft-p-min: speculative.draft.p_min
        """,
    ),
    *_rows(
        Kind.TEXT,
        """
        --model -m: model.path
        --mmproj -mm: mmproj.path
        --alias -a: model_alias
        --host: hostnames
        --cors-origins: cors_origins
        --n-gpu-layers -ngl --gpu-layers: n_gpu_layers
        --tensor-split -ts: tensor_split
        --device -dev:
        --override-tensor -ot:
        --override-kv:
        --api-prefix: api_prefix
        --chat-template: chat_template
        --chat-template-kwargs: default_template_kwargs
        --chat-template-file:
        --reasoning-format:
        --reasoning-effort:
        --samplers:
        --grammar:
        --json-schema -j:
        --logit-bias -l:
        --slot-prompt-similarity -sps:
        --spec-draft-model --model-draft -md: speculative.draft.mparams.path
        --spec-type: speculative.types
        --lora-scaled: lora_adapters
        --load-mode -lm:
        """,
    ),
    *_rows(Kind.TEXT, "--cache-type-k -ctk: cache_type_k", CACHE_TYPES),
    *_rows(Kind.TEXT, "--cache-type-v -ctv: cache_type_v", CACHE_TYPES),
    *_rows(Kind.TEXT, "--flash-attn -fa: flash_attn_type", ("on", "off", "auto")),
    *_rows(Kind.TEXT, "--fit -fit: fit_params", ("on", "off")),
    *_rows(Kind.TEXT, "--pooling: pooling_type", ("none", "mean", "cls", "last", "rank")),
    *_rows(Kind.TEXT, "--split-mode -sm: split_mode", ("none", "layer", "row", "tensor")),
    *_rows(Kind.TEXT, "--rope-scaling: rope_scaling_type", ("none", "linear", "yarn")),
    *_rows(Kind.TEXT, "--reasoning -rea: enable_reasoning", ("on", "off", "auto")),
    *_rows(Kind.TEXT, "--numa: numa", ("distribute", "isolate", "numactl")),
    *_rows(
        Kind.SWITCH,
        """
        --swa-full: swa_full
        --kv-offload -kvo --no-kv-offload -nkvo: -no_kv_offload
        --repack --no-repack -nr: -no_extra_bufts
        --cpu-moe -cmoe:
        --check-tensors: check_tensors
        --op-offload --no-op-offload: -no_op_offload
        --kv-unified -kvu --no-kv-unified -no-kvu: kv_unified
        --cache-idle-slots --no-cache-idle-slots: cache_idle_slots
        --context-shift --no-context-shift: ctx_shift
        --special -sp: special
        --warmup --no-warmup: warmup
        --cont-batching -cb --no-cont-batching -nocb: cont_batching
        --mmproj-offload --no-mmproj-offload: mmproj_use_gpu
        --reuse-port: reuse_port
        --embedding --embeddings: embedding
        --reranking --rerank: embedding pooling_type=rank
        --cache-prompt --no-cache-prompt: cache_prompt
        --metrics: endpoint_metrics
        --props: endpoint_props
        --slots --no-slots: endpoint_slots
        --jinja --no-jinja: use_jinja
        --ui --no-ui --webui --no-webui: ui
        --offline: offline
        --log-jsonl --no-log-jsonl: log_json
        --reasoning-preserve --no-reasoning-preserve:
        --ignore-eos: sampling.ignore_eos
        --escape -e --no-escape: escape
        """,
    ),
)

PROGRAMS = "it lets whoever asks the model run programs or read files of the host"
FETCHES = "it would fetch something that nobody has verified"
OWN_FILES = "it names a file that the engine's container does not have"

RULES = Rules(
    title="llama-server",
    reserved={
        "--model": ReservedOption(field="source", refused="the spec's source is what is served"),
        "--mmproj": ReservedOption(field="source", refused="it comes with the model's source"),
        "--alias": ReservedOption(field="name", refused="the model is asked by the spec's name"),
        "--spec-draft-model": ReservedOption(
            field="speculative.model", refused="the draft model comes with the spec"
        ),
        "--spec-type": ReservedOption(field="speculative.method"),
        "--lora-scaled": ReservedOption(field="lora", refused="the adapters come with the spec"),
        "--n-gpu-layers": ReservedOption(
            field="placement.partial_offload",
            refused="the claim has to hold the layers, so placement decides how many go there",
        ),
        "--ctx-size": ReservedOption(field="context"),
        "--parallel": ReservedOption(field="concurrency"),
    },
)

REFUSED = {
    **dict.fromkeys(("--tools", "--tools-runtime", "--agent", "-ag"), PROGRAMS),
    **dict.fromkeys(("--mcp-servers-config", "--mcp-servers-json", "--ui-mcp-proxy"), PROGRAMS),
    **dict.fromkeys(("--hf-repo", "-hf", "-hfr", "--model-url", "-mu", "--docker-repo"), FETCHES),
    **dict.fromkeys(("--hf-file", "--mmproj-url", "--models-dir", "--models-preset"), FETCHES),
    **dict.fromkeys(("--lora", "--control-vector", "--log-file"), OWN_FILES),
    **dict.fromkeys(("--slot-save-path", "--media-path", "--path", "--grammar-file"), OWN_FILES),
}
"""Options that no spec may use, and why."""

DRAFTS_SINCE = 9235
"""The first build that is known to make drafts of a type (`--spec-type`), by these names."""

REMOVED = {
    **dict.fromkeys(("--draft", "--draft-n", "--draft-max"), "--spec-draft-n-max"),
    **dict.fromkeys(("--draft-min", "--draft-n-min"), "--spec-draft-n-min"),
}
"""Options that llama-server dropped before that build, and what took their place."""

ALIASES = {option.names[0]: option.names[1:] for option in OPTIONS}
BY_NAME = {name: option for option in OPTIONS for name in option.names}


def check_options(arguments: EngineArguments, *, wheel: bool) -> Failure | None:
    """Check `engine.args` before the start; gives every mistake.

    Args:
        wheel: Whether the xllamacpp wheel serves, which lacks some of llama-server's options.
    """
    problems = [
        Problem(option=option.written, message=message, suggestion=suggestion)
        for option in arguments.options
        for message, suggestion in _mistakes(option.written, wheel=wheel)
    ]
    problems += [
        Problem(
            option=name,
            message="llama-server wants the value as a word of its own",
            suggestion=f"Write `{name} {value}`.",
        )
        for name, equals, value in (word.partition("=") for word in arguments.words)
        if equals and name in BY_NAME
    ]
    schema = server_schema("")
    problems += judge(arguments.words, schema, RULES, lambda: [schema]).problems
    found = {problem.option: problem for problem in reversed(problems)}
    if not found:
        return None
    hints = dict.fromkeys(one.suggestion for one in found.values() if one.suggestion)
    detail = "\n".join(map(str, reversed(found.values())))
    return Failure(Cause.BAD_SPEC, detail, suggestion=" ".join(hints) or None)


def _mistakes(name: str, *, wheel: bool) -> Iterator[tuple[str, str]]:
    if name in REFUSED:
        yield REFUSED[name], "Leave it out."
    elif name in REMOVED:
        yield "llama-server dropped it", f"Write `{REMOVED[name]}`."
    elif name not in BY_NAME:
        # llama-server knows no abbreviations, unlike the parser that checks the values.
        near = get_close_matches(name, BY_NAME, n=1)
        yield "llama-server does not know it", f"Did you mean `{near[0]}`?" if near else ""
    elif wheel and not BY_NAME[name].field:
        yield (
            "the server in the xllamacpp wheel lacks it",
            "Take `runtime: docker`, or leave it out.",
        )


@cache
def server_schema(version: str) -> Schema:
    """The options that `engine.args` may have, as the check of arguments reads them."""
    arguments = tuple(
        Argument(
            options=option.names,
            kind=option.kind,
            values=0 if option.kind == Kind.SWITCH else None,
            choices=option.choices,
        )
        for option in OPTIONS
    )
    return Schema(engine="llama.cpp", version=version, arguments=arguments)
