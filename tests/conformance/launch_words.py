"""The user's arguments of a launch case, as a spec has them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from moorage.spec.tokenize import is_option, user_tokens

Json = Mapping[str, Any]


def written_entries(given: Json) -> list[str]:
    """Entries of `engine.args`; in the writing that the engine is configured for, where it is."""
    written = given["model"].get("backend_parameters") or ()
    entries = [entry for entry in written if entry is not None]
    if given.get("data_dir"):
        entries = [entry.replace("{data_dir}", given["data_dir"]) for entry in entries]
    form = (given.get("engine") or {}).get("parameter_format")
    if form is None:
        return entries
    return [_entry(word) for word in in_one_writing(user_tokens(entries), form == "equal")]


def _entry(word: str) -> str:
    """A word that is split back into itself."""
    name, equals, value = word.partition("=")
    if not is_option(word) or not equals or value.startswith(("{", "[")):
        return word
    return f"{name}={shlex.quote(value)}"


def in_one_writing(tokens: Sequence[str], equals: bool) -> tuple[str, ...]:
    """Words with every option and its one value written alike: `--k=v`, or `--k v`.

    An option with several values keeps them apart: `--k=a --k=b` would mean the last one only.
    """
    written: list[str] = []
    lead = next((i for i, token in enumerate(tokens) if is_option(token)), len(tokens))
    for index, token in enumerate(tokens):
        if index < lead or not is_option(token):
            continue
        name, joined, value = token.partition("=")
        values = [value] if joined else list(takewhile(_is_value, tokens[index + 1 :]))
        stray = takewhile(_is_value, tokens[index + 1 :]) if joined else ()
        one = equals and len(values) == 1
        written += [f"{name}={values[0]}"] if one else [name, *values]
        written += stray
    return (*tokens[:lead], *written)


def _is_value(token: str) -> bool:
    return not is_option(token)
