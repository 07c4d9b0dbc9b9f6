"""Speculative decoding: the user's settings as `--speculative-config`."""

from __future__ import annotations

import json
from enum import StrEnum

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.engines.launch import Flag
from moorage.engines.vllm.flags import wanted
from moorage.spec import SpeculativeSpec


class Method(StrEnum):
    """How drafts are made."""

    EAGLE3 = "eagle3"
    MTP = "mtp"
    NGRAM = "ngram"
    DRAFT_MODEL = "draft_model"


class Speculative(Value):
    """The settings of speculative decoding.

    Attributes:
        method: How drafts are made.
        tokens: Tokens of a draft; None = not stated.
        shortest: Shortest run of tokens that is looked up in the prompt (n-gram).
        longest: Longest one.
        model: The draft model's directory as the engine sees it; empty = none.
    """

    method: Method
    tokens: int | None = None
    shortest: int | None = None
    longest: int | None = None
    model: str = ""

    @classmethod
    def of_spec(cls, spec: SpeculativeSpec, model: str = "") -> Speculative:
        """The settings of a spec, with the directory of the draft model."""
        return cls(
            method=Method(spec.method),
            tokens=spec.tokens,
            shortest=spec.ngram_min,
            longest=spec.ngram_max,
            model=model,
        )


def speculative_flags(speculative: Speculative | None) -> tuple[Flag, ...]:
    """`--speculative-config` with what is stated.

    Raises:
        Failure: `BAD_SPEC` when vLLM could not start with it.
    """
    if speculative is None:
        return ()
    _require_whole(speculative)
    config = {
        "method": speculative.method.value,
        "num_speculative_tokens": speculative.tokens,
        "prompt_lookup_max": speculative.longest,
        "prompt_lookup_min": speculative.shortest,
        "model": speculative.model,
    }
    stated = {key: value for key, value in config.items() if value}
    return (wanted(f"{speculative.method} drafts", "--speculative-config", json.dumps(stated)),)


def _require_whole(speculative: Speculative) -> None:
    """vLLM requires the length of a draft, except for MTP models, and the draft model."""
    missing = ""
    if speculative.method != Method.MTP and not speculative.tokens:
        missing = "tokens"
    elif speculative.method in (Method.EAGLE3, Method.DRAFT_MODEL) and not speculative.model:
        missing = "model"
    if missing:
        raise Failure(
            Cause.BAD_SPEC,
            f"speculative: {speculative.method} needs `{missing}`",
            suggestion=f"Add `{missing}` below `speculative`.",
        )
