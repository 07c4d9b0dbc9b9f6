"""An option that a version does not know: dropped, still to come, or mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from moorage.engines.schema.argument import Schema
from moorage.engines.schema.problem import Problem
from moorage.engines.schema.rules import Rules
from moorage.engines.schema.versions import Gone, gone, whereabouts


def unknown(option: str, schema: Schema, rules: Rules, others: Sequence[Schema]) -> Problem:
    """What is said to an option that a version does not know.

    Args:
        option: With its dashes.
        schema: What the version knows.
        rules: What else is known of the engine.
        others: The schemas of all versions.
    """
    here = f"{rules.title} {schema.version}"
    found = whereabouts(option, schema.version, others)
    entry = gone(option, rules.gone)
    if found.last:
        message = f"{here} does not know it; it is gone since {found.without}"
    elif found.first:
        message = f"{here} does not know it yet; it came with {found.first}"
        newer = f"Leave it out, or set `engine.version` to {found.first} or newer."
        return Problem(option=option, message=message, suggestion=newer)
    elif entry:
        since = f" since {entry.since}" if entry.since else ""
        message = f"{here} does not know it; it is gone{since}"
    else:
        message = f"{here} does not know it"
        return Problem(option=option, message=message, suggestion=_near(option, schema, others))
    return Problem(option=option, message=message, suggestion=_successor(entry))


def _successor(entry: Gone | None) -> str:
    if entry and entry.instead:
        return f"{entry.instead}."
    return "Leave it out." if entry else "Leave it out, or see the notes of that release."


def _near(option: str, schema: Schema, others: Sequence[Schema]) -> str:
    """The closest option of this version, else of another."""
    if near := difflib.get_close_matches(option, schema.options, n=1):
        return f"Did you mean `{near[0]}`?"
    versions = {name: other.version for other in others for name in other.options}
    if near := difflib.get_close_matches(option, versions, n=1):
        return f"Did you mean `{near[0]}`, which {versions[near[0]]} knows?"
    return ""
