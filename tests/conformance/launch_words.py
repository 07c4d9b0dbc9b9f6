"""The user's arguments of a launch case, as a spec has them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from moorage.spec.arguments import in_one_writing, is_option, user_tokens

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
