"""Flags and memory arguments for vLLM's LoRA adapters and draft models."""

import json
from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.common.versions import at_least
from moorage.engines.api_key import requires_key
from moorage.engines.companions import Adapter
from moorage.engines.flags import Flag, Variable, derived_flag, spec_flag, variable
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.launch_facts import version_of
from moorage.memory.options import LoraOptions, allowed_rank
from moorage.spec import AdapterUpdatesSpec, DraftMethod, ModelSpec, SpeculativeSpec
from moorage.spec.arguments import EngineArguments

WITHOUT_DRAFTS, DRAFTS_AGAIN = "0.10.0", "0.15.0"
"""The first version that cannot draft with a model of its own, and the first that can again.

Source: pull request 22047, which warns of the first, and 24322 with the notes of the second.
"""


def adapter_flags(
    adapters: Sequence[Adapter],
    base: str,
    args: EngineArguments,
    updates: AdapterUpdatesSpec | None = None,
) -> tuple[Flag, ...]:
    """LoRA's switch, number, adapters and rank; nothing if the user lists adapters in arguments.

    `base` is the model's served name, `updates` the room for adapters loaded later.

    Raises:
        Failure: `BAD_SPEC` for later adapters with several API servers: only one would load them.
    """
    if updates and (args.whole_number("--api-server-count") or 1) > 1:
        raise Failure(
            Cause.BAD_SPEC,
            "lora_updates: vLLM does not load adapters later with --api-server-count above 1",
            suggestion="Leave --api-server-count or `lora_updates` out; `replicas` serves more.",
        )
    if not (adapters or updates) or args.states("--lora-modules"):
        return ()
    later = updates.max if updates else 0
    number = f"{len(adapters)} adapters at once" + f", and {later} loaded later" * bool(later)
    modules = [
        json.dumps({"name": one.name, "path": one.path, "base_model_name": base})
        for one in adapters
    ]
    rank = max([one.rank or 0 for one in adapters] + ([updates.rank] if updates else []))
    why = f"the largest rank is {rank}"
    return (
        spec_flag("lora" if adapters else "lora_updates", "--enable-lora"),
        derived_flag(number, "--max-loras", str(len(adapters) + later)),
        *([spec_flag("lora", "--lora-modules", *modules)] if modules else []),
        *([derived_flag(why, "--max-lora-rank", str(allowed_rank(rank)))] if rank else []),
    )


def speculative_flags(speculative: SpeculativeSpec | None, model: str = "") -> tuple[Flag, ...]:
    """`--speculative-config`; `model` is the draft model's path for the engine, empty = none."""
    if speculative is None:
        return ()
    config = {
        "method": speculative.method.value,
        "num_speculative_tokens": speculative.tokens,
        "prompt_lookup_max": speculative.ngram_max,
        "prompt_lookup_min": speculative.ngram_min,
        "model": model,
    }
    stated = {key: value for key, value in config.items() if value}
    return (spec_flag(f"{speculative.method} drafts", "--speculative-config", json.dumps(stated)),)


def draft_refusal(request: LaunchRequest, since: str = DRAFTS_AGAIN) -> Failure | None:
    """Why this version cannot draft with a model of its own; None = it can, or need not.

    `since` is the engine's first version that can.
    """
    drafts, version = request.spec.speculative, version_of(request)
    if drafts is None or drafts.method != DraftMethod.DRAFT_MODEL:
        return None
    if not at_least(version, WITHOUT_DRAFTS) or at_least(version, DRAFTS_AGAIN):
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"speculative.method: vLLM {version} does not draft with a model of its own",
        suggestion=f"Take `engine.version` {since} or newer, or another method.",
    )


UPDATING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
"""Whoever may ask the model may then make it load an adapter from any path or repository."""


def update_variables(updates: AdapterUpdatesSpec | None) -> tuple[Variable, ...]:
    """The variable that opens the endpoints for loading and unloading adapters."""
    reason = "lora_updates: adapters are loaded and unloaded while it serves"
    return (variable(UPDATING, "1", reason, Origin.USER),) if updates else ()


def memory_arguments(spec: ModelSpec, lora: LoraOptions | None) -> tuple[str, ...]:
    """Arguments for adapters and drafts that affect memory, as far as known before a launch.

    The user's own arguments come later and take precedence.
    """
    written, speculative = spec.engine.arguments, spec.speculative
    words: tuple[str, ...] = ()
    if lora and not (written.switch("--enable-lora") or written.states("--lora-modules")):
        sizes = ("--max-loras", str(lora.max_loras), "--max-lora-rank", str(lora.max_rank))
        words = ("--enable-lora", *sizes)
    if speculative and not written.states("--speculative-config"):
        flags = speculative_flags(speculative, speculative.model or "")
        words += tuple(word for flag in flags for word in flag.tokens)
    return words


def update_warnings(request: LaunchRequest, key: str) -> tuple[str, ...]:
    """A warning if anybody may exchange adapters; `key` is the variable of the server's key."""
    if request.spec.lora_updates is None or requires_key(request, key):
        return ()
    advice = f"`secrets: {{{key}: NAME}}` makes it ask for a key"
    return (f"lora_updates: whoever reaches the port may change what is served; {advice}",)
