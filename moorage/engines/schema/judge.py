"""Whether the user's words are good arguments of a version of an engine."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from moorage.engines.schema.argument import Schema
from moorage.engines.schema.owned import Owned
from moorage.engines.schema.problem import Problem
from moorage.engines.schema.reading import Reading, read
from moorage.engines.schema.versions import Gone, gone, whereabouts
from moorage.values import Value


class Rules(Value):
    """What is known of an engine's arguments beside its schemas.

    Attributes:
        title: The engine's name as people write it.
        owned: Arguments that fields decide about, by their first name.
        gone: Arguments that were dropped.
    """

    title: str
    owned: dict[str, Owned] = {}
    gone: dict[str, Gone] = {}


class Judgement(Value):
    """What was found.

    Attributes:
        problems: What has to be changed; empty = the engine accepts the words.
        notes: What a person should know all the same.
    """

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def judge(
    words: Sequence[str], schema: Schema, rules: Rules, others: Callable[[], Sequence[Schema]]
) -> Judgement:
    """Hold words against the version that they are for.

    Args:
        words: As `user_tokens` made them.
        schema: What that version knows.
        rules: What else is known of the engine.
        others: Gives the schemas of all versions; called only when an option is not known.
    """
    reading = read(words, schema)
    problems = [*_refused(reading, schema, rules.owned), *reading.problems]
    problems += [_stray(word) for word in reading.stray]
    if reading.unknown:
        known = others()
        problems += [_unknown(option, schema, rules, known) for option in reading.unknown]
    return Judgement(
        problems=tuple(problems),
        notes=(*_wins(reading, schema, rules.owned), *_ending(reading, schema)),
    )


def judge_unknown(words: Sequence[str], schema: Schema, rules: Rules) -> Judgement:
    """Hold words against what holds for every version, where the version's schema is not known.

    Args:
        words: As `user_tokens` made them.
        schema: Of any version, to recognise other writings of an argument.
        rules: What else is known of the engine.
    """
    reading = read(words, schema)
    problems = _refused(reading, schema, rules.owned)
    return Judgement(problems=tuple(problems), notes=tuple(_wins(reading, schema, rules.owned)))


def _refused(reading: Reading, schema: Schema, owned: Mapping[str, Owned]) -> list[Problem]:
    return [
        Problem(option=option, message=entry.refused, suggestion=_instead(entry))
        for option, entry in _fields(reading, schema, owned).items()
        if entry.refused
    ]


def _fields(reading: Reading, schema: Schema, owned: Mapping[str, Owned]) -> dict[str, Owned]:
    """What fields decide about, by the user's option; an argument is known by all its names."""
    return {
        option: owned[name]
        for option in reading.given
        for name in schema.options[option].options
        if name in owned
    }


def _instead(entry: Owned) -> str:
    return f"Use `{entry.field}` instead." if entry.field else "Leave it out."


def _stray(word: str) -> Problem:
    return Problem(
        option=word,
        message="this word belongs to no option",
        suggestion="Write it behind its option, or in quotes where it is part of a value.",
    )


def _unknown(option: str, schema: Schema, rules: Rules, others: Sequence[Schema]) -> Problem:
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


def _wins(reading: Reading, schema: Schema, owned: Mapping[str, Owned]) -> list[str]:
    return [
        f"engine.args: {option} wins over `{entry.field}` of the spec"
        for option, entry in _fields(reading, schema, owned).items()
        if not entry.refused
    ]


def _ending(reading: Reading, schema: Schema) -> list[str]:
    notes = []
    for option in dict.fromkeys(reading.given):
        if ending := schema.options[option].deprecated:
            leaves = f"; {ending.gone_in} drops it" if ending.gone_in else ""
            instead = f"; use {ending.instead}" if ending.instead else ""
            notes.append(f"engine.args: {option} is deprecated{leaves}{instead}")
    return notes
