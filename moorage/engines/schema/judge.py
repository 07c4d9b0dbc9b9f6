"""Whether the user's words are good arguments of a version of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from moorage.common.values import Value
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.problem import Problem
from moorage.engines.schema.reading import Reading, read
from moorage.engines.schema.rules import Owned, Rules
from moorage.engines.schema.unknown import unknown

MOST_UNKNOWN = 20
"""Unknown options for which the nearest known one is looked for: that takes milliseconds each."""


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
        problems += [unknown(one, schema, rules, known) for one in reading.unknown[:MOST_UNKNOWN]]
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
