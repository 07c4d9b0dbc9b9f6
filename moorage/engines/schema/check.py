"""The check of the user's arguments before anything starts, against one version or several."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.common.versions import version_key
from moorage.engines.schema.argument import (
    Deprecation,
    RemovedOption,
    ReservedOption,
    Rules,
    Schema,
)
from moorage.engines.schema.convert import Problem
from moorage.engines.schema.reading import Reading, read
from moorage.images.catalogue import stated_version
from moorage.spec import EngineSpec, RuntimeName
from moorage.spec.patterns import secret_option

MOST_UNKNOWN = 20
"""Most unknown options to report: finding the nearest known option takes milliseconds each."""

Schemas = Callable[[], Sequence[Schema]]
"""Returns the schemas of all known versions, the newest first."""


class ArgumentCheck(Value):
    """The result of a check without mistakes."""

    against: str = ""
    """Engine and version of the schema that was used; empty = no schema, or no arguments."""

    warnings: tuple[str, ...] = ()


def check_arguments(
    engine: EngineSpec, rules: Rules, schema: Schema | None, every: Schemas, image: str = ""
) -> ArgumentCheck:
    """Check `engine.args` for the version that will run.

    Args:
        schema: The version's schema; None = unknown, so no argument counts as unknown.
        image: Reference of the image that will run, where the spec names none; empty = unknown.

    Raises:
        Failure: `BAD_SPEC` with every mistake.
    """
    words = words_of(engine)
    if not words:
        return ArgumentCheck()
    problems, notes = judge(words, schema, rules, every)
    _require_none(problems)
    # Also find secrets that the schema-based rules miss, such as those of an unknown version.
    refuse_secrets(engine)
    if schema is None:
        return ArgumentCheck(warnings=(*notes, _unchecked(engine.image or image, rules)))
    return ArgumentCheck(against=f"{schema.engine} {schema.version}", warnings=notes)


def check_likely(
    engine: EngineSpec, rules: Rules, schemas: Sequence[Schema | None], every: Schemas
) -> None:
    """Check `engine.args` while several versions are possible; None is an unknown version.

    Raises:
        Failure: `BAD_SPEC` with the mistakes for the first version, if no version accepts them.
    """
    if words := words_of(engine):
        possible = [None] if None in schemas or not schemas else schemas
        mistakes = [judge(words, schema, rules, every).problems for schema in possible]
        if all(mistakes):
            _require_none(mistakes[0])


class Judgement(NamedTuple):
    """Mistakes and warnings of a check; the engine accepts words without mistakes."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def judge(words: tuple[str, ...], schema: Schema | None, rules: Rules, every: Schemas) -> Judgement:
    """Check words of a command line; without a schema, only by the rules for all versions."""
    known = schema or every()[0]  # any schema recognises other spellings of an option
    reading = read(words, known)
    fields = _by_fields(reading, known, rules.reserved)
    if schema is None:
        return fields
    message = "this word belongs to no option"
    fix = "Write it behind its option, or in quotes where it is part of a value."
    stray = (Problem(option=word, message=message, suggestion=fix) for word in reading.stray)
    unknown = (_unknown(one, schema, rules, every()) for one in reading.unknown[:MOST_UNKNOWN])
    absent = _absent(reading, schema, rules)
    problems = (*fields.problems, *absent, *reading.problems, *stray, *unknown)
    return Judgement(problems, (*fields.notes, *_deprecation_notes(reading, schema)))


def _by_fields(
    reading: Reading, schema: Schema, reserved: Mapping[str, ReservedOption]
) -> Judgement:
    """Problems and notes about options that fields of the spec decide, by any of their names."""
    found = {
        option: reserved[name]
        for option in reading.given
        for name in schema.options[option].options
        if name in reserved
    }
    problems, notes = list[Problem](), list[str]()
    for option, entry in found.items():
        if not entry.refused:
            notes.append(f"engine.args: {option} wins over `{entry.field}` of the spec")
            continue
        instead = f"Use `{entry.field}` instead." if entry.field else "Leave it out."
        problems.append(Problem(option=option, message=entry.refused, suggestion=instead))
    return Judgement(tuple(problems), tuple(notes))


def _absent(reading: Reading, schema: Schema, rules: Rules) -> Iterator[Problem]:
    """Problems of options that the engine removed, or that the program in its place lacks."""
    for option in dict.fromkeys(reading.given):
        argument = schema.options[option]
        if argument.removed:
            message = f"{rules.title} {schema.version} has dropped it"
            yield Problem(option=option, message=message, suggestion=f"Use {argument.removed}.")
        elif (some := rules.subset) and some.options.isdisjoint(argument.options):
            yield Problem(option=option, message=some.refused, suggestion=some.suggestion)


def _unknown(option: str, schema: Schema, rules: Rules, others: Sequence[Schema]) -> Problem:
    """The problem of an option that a version lacks: removed, added later, or mistyped."""
    message = f"{rules.title} {schema.version} does not know it"
    here = version_key(schema.version)
    ordered = sorted(others, key=lambda other: version_key(other.version))
    older = [other for other in ordered if version_key(other.version) < here]
    newer = [other for other in ordered if version_key(other.version) > here]
    removed = (entry for name, entry in rules.removed.items() if fnmatchcase(option, name))
    entry = next(removed, None)
    last = next((i for i in reversed(range(len(older))) if option in older[i].options), None)
    if last is not None:
        gone = [*older, schema][last + 1].version
        return Problem(
            option=option,
            message=f"{message}; it is gone since {gone}",
            suggestion=_successor(entry, older[last].options[option].deprecated),
        )
    if first := next((other.version for other in newer if option in other.options), ""):
        return Problem(
            option=option,
            message=f"{message} yet; it came with {first}",
            suggestion=f"Leave it out, or set `engine.version` to {first} or newer.",
        )
    if entry:
        since = f" since {entry.since}" if entry.since else ""
        fix = _successor(entry)
        return Problem(option=option, message=f"{message}; it is gone{since}", suggestion=fix)
    return Problem(option=option, message=message, suggestion=_near(option, schema, others))


def _successor(entry: RemovedOption | None, notice: Deprecation | None = None) -> str:
    """The replacement of a removed option, by the rules, else by the engine's own notice."""
    if entry and entry.instead:
        return f"{entry.instead}."
    if notice and notice.instead:
        return f"Use `{notice.instead}`."
    return "Leave it out." if entry else "Leave it out, or see the notes of that release."


def _near(option: str, schema: Schema, others: Sequence[Schema]) -> str:
    """A suggestion with the closest option of this version, else of another version."""
    if near := difflib.get_close_matches(option, schema.options, n=1):
        return f"Did you mean `{near[0]}`?"
    versions = {name: other.version for other in others for name in other.options}
    if near := difflib.get_close_matches(option, versions, n=1):
        return f"Did you mean `{near[0]}`, which {versions[near[0]]} knows?"
    return ""


def _deprecation_notes(reading: Reading, schema: Schema) -> list[str]:
    notes = []
    for option in dict.fromkeys(reading.given):
        if notice := schema.options[option].deprecated:
            leaves = f"; {notice.gone_in} drops it" if notice.gone_in else ""
            instead = f"; use {notice.instead}" if notice.instead else ""
            notes.append(f"engine.args: {option} is deprecated{leaves}{instead}")
    return notes


def likely_versions(engine: EngineSpec, default: str, installed: str | None) -> tuple[str, ...]:
    """Versions that may run by the spec, the likeliest first; empty = unknown.

    The image of `default` is used if the spec names none; `installed` is on this machine.
    """
    if engine.version or engine.image:
        version = stated_version(engine)
        return (version,) if version else ()
    programs = () if installed is None else (installed,)
    if engine.runtime == RuntimeName.PROCESS:
        return programs
    return (default,) if engine.runtime == RuntimeName.DOCKER else (default, *programs)


def refuse_secrets(engine: EngineSpec) -> None:
    """Refuse options with secret values, whatever program reads them.

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


def words_of(engine: EngineSpec) -> tuple[str, ...]:
    """The words for the engine's own parser; none if another program reads them."""
    own = engine.command is None and engine.entrypoint is None
    return engine.arguments.words if own else ()


def _require_none(problems: Sequence[Problem]) -> None:
    if problems:
        suggestions = dict.fromkeys(p.suggestion for p in problems if p.suggestion)
        detail = "\n".join(map(str, problems))
        raise Failure(Cause.BAD_SPEC, detail, suggestion=" ".join(suggestions) or None)


def _unchecked(image: str, rules: Rules) -> str:
    way = f"--image {image}" if image else "--installed"
    remedy = (
        f"; `moorage schema {rules.extracted_as} {way}` finds out" if rules.extracted_as else ""
    )
    return f"engine.args were not checked: which arguments this version knows is not known{remedy}"
