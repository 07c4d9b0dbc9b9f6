"""Refusing arguments that an engine would refuse, before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.common.failures import Cause, Failure
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.judge import Judgement, judge, judge_unknown
from moorage.engines.schema.rules import Rules
from moorage.images.tagged import tagged_version
from moorage.spec import EngineName, EngineSpec, RuntimeName
from moorage.spec.image_reference import parse_reference
from moorage.spec.safe import secret_option
from moorage.spec.tokenize import user_tokens

Schemas = Callable[[], Sequence[Schema]]
"""Gives the schemas of all versions that are known, the newest first."""


def check_arguments(
    engine: EngineSpec, rules: Rules, schema: Schema | None, every: Schemas
) -> tuple[str, ...]:
    """Check `engine.args` for the version that will run.

    Args:
        engine: What the user wrote.
        rules: What is known of the engine's arguments beside schemas.
        schema: Of that version; None = not known, so that no argument is unknown.
        every: Those of all versions.

    Returns:
        What a person should know all the same.

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
    """Check `engine.args` while several versions may still be meant.

    Args:
        engine: What the user wrote.
        rules: What is known of the engine's arguments beside schemas.
        schemas: Of the versions that may run; None among them = one that is not known.
        every: Those of all versions.

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
    """Versions that may run, the likeliest first, as far as the spec tells; empty = not known.

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
    if option := secret_option(user_tokens(engine.args)):
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {option}: secrets never stand in arguments: records, logs and"
            " processes show them",
            suggestion="Use `secrets`: the program finds it in its environment.",
        )


def _published(image: str) -> tuple[str, ...]:
    """The version of an official image; one of another registry may hold more than that does."""
    version = "" if parse_reference(image).registry else tagged_version(image, EngineName.VLLM)
    return (version,) if version else ()


def words_of(engine: EngineSpec) -> tuple[str, ...]:
    """The words that go to the engine's own parser; none where another program reads them."""
    own = engine.command is None and engine.entrypoint is None
    return user_tokens(engine.args) if own else ()


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
