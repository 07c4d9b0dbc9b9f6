"""The longest context that a model serves: from its configuration, or as the spec requests.

Source: `_get_and_verify_max_len` (`config/model.py`) of vLLM 0.32.
"""

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.models.config import TEXT_CONFIG_KEYS, Config, context_length, text_config
from moorage.models.rope import (
    MOST,
    ORIGINAL,
    POSITIONS,
    RopeRule,
    first_int,
    rope_rule,
    rope_settings,
    rope_type,
)
from moorage.spec import ModelSpec

CONTEXT_WHEN_UNKNOWN = 2048

ALLOWS_LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
"""Variable with which vLLM only warns of a context beyond the model's (`envs.py`)."""


def derive_context(
    spec: ModelSpec, config: Config, longest_input: int | None, warnings: list[str]
) -> tuple[int, Origin, str]:
    """The context, its origin and the reason; `warnings` gets further ones.

    `longest_input` is what the model's sentence or tokenizer settings allow; None = nothing counts.

    Raises:
        Failure: `BAD_SPEC` when the spec requests a longer context than the model supports.
    """
    rule, why = rope_rule(spec), "the longest that the model's configuration allows"
    longest = context_length(config, rule=rule)
    scaled, extend = _if_multiplied(config, longest, rule), "extend the model's rope scaling"
    if longest_input and longest_input < (longest or MOST) and spec.engine.may_be_vllm:
        longest, scaled, extend = longest_input, "", "raise it in the model's own settings"
        why = "the longest input that the model's sentence or tokenizer settings allow"
    any_length = longest and allows_longer(spec)
    if any_length:
        warnings.append(
            f"engine.env: with {ALLOWS_LONGER} a context beyond {longest} tokens is not refused;"
            " positions that the model does not have give no sense, or stop the engine"
        )
    if spec.context != "auto":
        if longest and not any_length:
            _require_within(spec.context, longest, scaled or extend)
        return spec.context, Origin.USER, "context in the spec"
    if longest:
        if (short := _before_long_rope(config)) and short < longest and spec.engine.may_be_vllm:
            warnings.append(
                f"context: {short} tokens; `context: {longest}` serves more, but then the model"
                " answers short prompts worse, too, since its rope scaling holds for all requests"
            )
            return short, Origin.DERIVED, "the longest without the model's long rope scaling"
        if scaled:
            warnings.append(f"context: {longest} tokens hold the model's yarn scaling; {scaled}")
        return longest, Origin.DERIVED, why
    assumed = context_length(config, CONTEXT_WHEN_UNKNOWN, rule) or CONTEXT_WHEN_UNKNOWN
    warnings.append(f"the configuration names no context length; {assumed} tokens are assumed")
    return assumed, Origin.DEFAULT, "the configuration names none"


def allows_longer(spec: ModelSpec) -> bool:
    """Whether the engine takes a context beyond the model's."""
    value = spec.engine.env.get(ALLOWS_LONGER, "")
    return spec.engine.may_be_vllm and value.strip().lower() in ("1", "true")


def _require_within(wanted: int, longest: int, remedy: str) -> None:
    if wanted > longest:
        raise Failure(
            Cause.BAD_SPEC,
            f"context: {wanted} tokens are requested, the model ends at {longest}",
            suggestion=f"Lower `context` to {longest}, or {remedy}.",
        )


def _before_long_rope(config: Config) -> int | None:
    """The length up to which a model needs no long rope scaling; None = it has no such scaling.

    vLLM takes it for the default (`_get_and_verify_max_len`).
    """
    text = text_config(config)
    if not any(rope_type(rope) == "longrope" for rope in rope_settings(text)):
        return None
    return first_int(text, ORIGINAL)


def _if_multiplied(config: Config, longest: int | None, rule: RopeRule) -> str:
    """How to get the context that a multiplied `yarn` would give; empty = it is not longer.

    Older model cards advise to write only the factor into the configuration.
    """
    longer = context_length(config)
    if rule == RopeRule.MULTIPLIED or not longest or not longer or longer <= longest:
        return ""
    text, override = text_config(config), f'{{"{POSITIONS}": {longer}}}'
    if text is not config:
        key = next((key for key in TEXT_CONFIG_KEYS if config.get(key) is text), "")
        if not key:
            return f"state {POSITIONS} {longer} in the model's configuration"
        override = f'{{"{key}": {override}}}'
    return f"`--hf-overrides {override}` in `engine.args` serves {longer}"
