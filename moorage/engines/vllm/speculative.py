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
    """What is asked of speculative decoding.

    Attributes:
        method: How drafts are made.
        tokens: Tokens of a draft; None = not said.
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
    def wished(cls, wish: SpeculativeSpec, model: str = "") -> Speculative:
        """What a spec asks for, with the directory of the draft model."""
        return cls(
            method=Method(wish.method),
            tokens=wish.tokens,
            shortest=wish.ngram_min,
            longest=wish.ngram_max,
            model=model,
        )


def speculative_flags(speculative: Speculative | None) -> tuple[Flag, ...]:
    """`--speculative-config` with what is said.

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
    said = {key: value for key, value in config.items() if value}
    return (wanted(f"{speculative.method} drafts", "--speculative-config", json.dumps(said)),)


def _require_whole(speculative: Speculative) -> None:
    """vLLM asks for the length of a draft (an MTP model may say it itself) and its maker."""
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
