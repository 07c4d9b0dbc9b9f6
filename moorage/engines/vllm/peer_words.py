"""The user's arguments as the rules of the policy `baseline` read them."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.spec.arguments import is_option

FOUND_ANYWAY = ("--lora_modules", "--max_lora_rank")
"""Written with `_`, and looked for by GPUStack."""


def peer_words(words: Sequence[str]) -> tuple[str, ...]:
    """Words in an order, and of a choice, that make our questions give GPUStack's answers.

    GPUStack takes the first of several where ours and vLLM take the last one, hence the order. An
    option that is written with `_` it does not find. Only the rules go without it: what the user
    wrote in any way is not repeated.
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
