"""The check of the user's arguments before anything starts: against one version, or several."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.engines.schema.argument import (
    RemovedOption,
    ReservedOption,
    Rules,
    Schema,
    known_in,
    removed_option,
)
from moorage.engines.schema.convert import Problem
from moorage.engines.schema.reading import Reading, read
from moorage.images.catalogue import tagged_version
from moorage.spec import EngineName, EngineSpec, RuntimeName
from moorage.spec.image_reference import parse_reference
from moorage.spec.patterns import secret_option


def unknown(option: str, schema: Schema, rules: Rules, others: Sequence[Schema]) -> Problem:
    """The problem of an option that a version does not know: dropped, still to come, or mistyped.

    Args:
        option: With its dashes.
        schema: The version's arguments.
        rules: Further rules of the engine.
        others: The schemas of all versions.
    """
    here = f"{rules.title} {schema.version}"
    found = known_in(option, schema.version, others)
    entry = removed_option(option, rules.removed)
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


def _successor(entry: RemovedOption | None) -> str:
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


MOST_UNKNOWN = 20
"""Unknown options for which the nearest known one is computed, which takes milliseconds each."""


class Judgement(Value):
    """The result of a check.

    Attributes:
        problems: Mistakes; empty = the engine accepts the words.
        notes: Warnings.
    """

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def judge(
    words: tuple[str, ...], schema: Schema, rules: Rules, others: Callable[[], Sequence[Schema]]
) -> Judgement:
    """Check words against the version that they are for.

    Args:
        words: Of a command line.
        schema: The arguments of that version.
        rules: Further rules of the engine.
        others: Gives the schemas of all versions; called only when an option is not known.
    """
    reading = read(words, schema)
    problems = [*_refused(reading, schema, rules.reserved), *reading.problems]
    problems += [_stray(word) for word in reading.stray]
    if reading.unknown:
        known = others()
        problems += [unknown(one, schema, rules, known) for one in reading.unknown[:MOST_UNKNOWN]]
    return Judgement(
        problems=tuple(problems),
        notes=(
            *_override_notes(reading, schema, rules.reserved),
            *_deprecation_notes(reading, schema),
        ),
    )


def judge_unknown(words: tuple[str, ...], schema: Schema, rules: Rules) -> Judgement:
    """Check words against the rules for every version, where the version's schema is not known.

    Args:
        words: Of a command line.
        schema: Of any version, to recognise other spellings of an option.
        rules: Further rules of the engine.
    """
    reading = read(words, schema)
    problems = _refused(reading, schema, rules.reserved)
    return Judgement(
        problems=tuple(problems), notes=tuple(_override_notes(reading, schema, rules.reserved))
    )


def _refused(
    reading: Reading, schema: Schema, reserved: Mapping[str, ReservedOption]
) -> list[Problem]:
    return [
        Problem(option=option, message=entry.refused, suggestion=_replacement(entry))
        for option, entry in _fields(reading, schema, reserved).items()
        if entry.refused
    ]


def _fields(
    reading: Reading, schema: Schema, reserved: Mapping[str, ReservedOption]
) -> dict[str, ReservedOption]:
    """Reserved options among the user's, under any of their names."""
    return {
        option: reserved[name]
        for option in reading.given
        for name in schema.options[option].options
        if name in reserved
    }


def _replacement(entry: ReservedOption) -> str:
    return f"Use `{entry.field}` instead." if entry.field else "Leave it out."


def _stray(word: str) -> Problem:
    return Problem(
        option=word,
        message="this word belongs to no option",
        suggestion="Write it behind its option, or in quotes where it is part of a value.",
    )


def _override_notes(
    reading: Reading, schema: Schema, reserved: Mapping[str, ReservedOption]
) -> list[str]:
    return [
        f"engine.args: {option} wins over `{entry.field}` of the spec"
        for option, entry in _fields(reading, schema, reserved).items()
        if not entry.refused
    ]


def _deprecation_notes(reading: Reading, schema: Schema) -> list[str]:
    notes = []
    for option in dict.fromkeys(reading.given):
        if notice := schema.options[option].deprecated:
            leaves = f"; {notice.gone_in} drops it" if notice.gone_in else ""
            instead = f"; use {notice.instead}" if notice.instead else ""
            notes.append(f"engine.args: {option} is deprecated{leaves}{instead}")
    return notes


Schemas = Callable[[], Sequence[Schema]]
"""Returns the schemas of all known versions, the newest first."""


def check_arguments(
    engine: EngineSpec, rules: Rules, schema: Schema | None, every: Schemas
) -> tuple[str, ...]:
    """Check `engine.args` for the version that will run.

    Args:
        engine: What the user wrote.
        rules: Further rules of the engine.
        schema: Of that version; None = not known, so no argument counts as unknown.
        every: The schemas of all versions.

    Returns:
        Warnings.

    Raises:
        Failure: `BAD_SPEC` with every mistake.
    """
    words = words_of(engine)
    if not words:
        return ()
    if schema is not None:
        return _accepted(judge(words, schema, rules, every))
    notes = _accepted(judge_unknown(words, every()[0], rules))
    return (*notes, _unchecked(engine))


def check_likely(
    engine: EngineSpec, rules: Rules, schemas: Sequence[Schema | None], every: Schemas
) -> None:
    """Check `engine.args` while several versions are possible.

    Args:
        engine: What the user wrote.
        rules: Further rules of the engine.
        schemas: Of the versions that may run; None among them = one that is not known.
        every: The schemas of all versions.

    Raises:
        Failure: `BAD_SPEC` with the mistakes for the first one, when none takes the arguments.
    """
    words = words_of(engine)
    known = [schema for schema in schemas if schema is not None]
    if not words:
        return
    if not schemas or len(known) < len(schemas):
        _accepted(judge_unknown(words, every()[0], rules))
        return
    judgements = [judge(words, schema, rules, every) for schema in known]
    if all(judgement.problems for judgement in judgements):
        _accepted(judgements[0])


def likely_versions(engine: EngineSpec, default: str, installed: str | None) -> tuple[str, ...]:
    """Versions that may run, the likeliest first, by the spec; empty = not known.

    Args:
        engine: What the user wrote.
        default: Version whose image is taken when the spec names none.
        installed: Version that is installed on this machine; None = none is.
    """
    if engine.version:
        return (engine.version,)
    if engine.image:
        return _published(engine.image)
    programs = () if installed is None else (installed,)
    if engine.runtime == RuntimeName.PROCESS:
        return programs
    return (default,) if engine.runtime == RuntimeName.DOCKER else (default, *programs)


def refuse_secrets(engine: EngineSpec) -> None:
    """Refuse options whose value is a secret, whatever program reads them.

    Raises:
        Failure: `BAD_SPEC`, without the value.
    """
    if option := secret_option(engine.arguments.words):
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {option}: secrets never stand in arguments: records, logs and"
            " processes show them",
            suggestion="Use `secrets`: the program finds it in its environment.",
        )


def _published(image: str) -> tuple[str, ...]:
    """The version of an official image; an image of another registry may contain more."""
    version = "" if parse_reference(image).registry else tagged_version(image, EngineName.VLLM)
    return (version,) if version else ()


def words_of(engine: EngineSpec) -> tuple[str, ...]:
    """The words for the engine's own parser; none where another program reads them."""
    own = engine.command is None and engine.entrypoint is None
    return engine.arguments.words if own else ()


def _accepted(judgement: Judgement) -> tuple[str, ...]:
    if judgement.problems:
        suggestions = dict.fromkeys(p.suggestion for p in judgement.problems if p.suggestion)
        raise Failure(
            Cause.BAD_SPEC,
            "\n".join(map(str, judgement.problems)),
            suggestion=" ".join(suggestions) or None,
        )
    return judgement.notes


def _unchecked(engine: EngineSpec) -> str:
    way = f"--image {engine.image}" if engine.image else "--installed"
    return (
        "engine.args were not checked: which arguments this version knows is not known;"
        f" `moorage schema {way}` finds out"
    )
