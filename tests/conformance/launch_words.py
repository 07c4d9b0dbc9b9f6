"""The user's arguments of a launch case, and what GPUStack's rules see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.arguments import in_one_writing, is_option, user_tokens

Json = Mapping[str, Any]

FOUND_ANYWAY = ("--lora_modules", "--max_lora_rank")
"""Written with `_`, and looked for by GPUStack."""


def written_words(given: Json) -> tuple[str, ...]:
    """What stands in the command, in the writing that the engine is configured for."""
    written = given["model"].get("backend_parameters") or ()
    words = user_tokens([entry for entry in written if entry is not None])
    if given.get("data_dir"):
        words = tuple(word.replace("{data_dir}", given["data_dir"]) for word in words)
    form = (given.get("engine") or {}).get("parameter_format")
    return words if form is None else in_one_writing(words, form == "equal")


def seen_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words as GPUStack's rules read them.

    They take the first of several where ours and vLLM take the last one, hence the order. An option
    that is written with `_` they do not find; only the rules go without it: what the user wrote in
    any way is not repeated.
    """
    options: list[list[str]] = []
    for word in words:
        if is_option(word):
            options.append([])
        if options:
            options[-1].append(word)
    return tuple(word for option in reversed(options) if _is_found(option[0]) for word in option)


def _is_found(word: str) -> bool:
    name = word.partition("=")[0]
    return "_" not in name or name in FOUND_ANYWAY
