"""Words of a command line as keywords: the fields of vLLM's engine arguments, with their types."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.convert import CONVERSIONS, NOTHING, NotAccepted
from moorage.engines.schema.reading import rewritten
from moorage.spec.tokenize import is_option


def keywords(words: Sequence[str], schema: Schema) -> dict[str, Any]:
    """The values that an engine's own parser would read from words, by the name of the field.

    The last occurrence of an option counts.

    Raises:
        Failure: `BAD_SPEC` for an unknown or abbreviated option, or an invalid value.
    """
    found: dict[str, Any] = {}
    for option, values in _options(_rewritten(words, schema)):
        argument = schema.options.get(option)
        if argument is None:
            raise _unknown(option, schema)
        try:
            found[_field(argument)] = _value(argument, option, values)
        except NotAccepted as error:
            raise _bad(option, str(error)) from None
    return found


def _rewritten(words: Sequence[str], schema: Schema) -> list[str]:
    try:
        return rewritten(words, schema)
    except NotAccepted as error:
        raise _bad(str(error), "its value is missing") from None


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each option with its values."""
    option, values = "", list[str]()
    for word in words:
        if not is_option(word):
            values.append(word)
            continue
        if option:
            yield option, values
        option, equals, value = word.partition("=")
        values = [value] if equals else []
    if option:
        yield option, values


def _field(argument: Argument) -> str:
    """The field's name, which in vLLM equals the argument's first long option."""
    name = next(name for name in argument.options if name.startswith("--"))
    return name.removeprefix("--").replace("-", "_")


def _value(argument: Argument, option: str, values: Sequence[str]) -> Any:
    if argument.kind == Kind.SWITCH:
        return not (option.startswith("--no-") and option != argument.name)
    if not values and argument.values != "?":
        raise NotAccepted("its value is missing")
    read = [_one(argument, value) for value in values]
    return read if argument.values in ("+", "*") else next(iter(read), None)


def _one(argument: Argument, word: str) -> Any:
    return None if argument.none and word in NOTHING else CONVERSIONS[argument.kind](word)


def _unknown(option: str, schema: Schema) -> Failure:
    if not schema.assumed:
        return _bad(option, f"vLLM {schema.version} does not know it; write options in full")
    return _bad(
        option,
        "no version of vLLM whose arguments are known has it; write options in full",
        "Correct it, or let `moorage schema vllm --image IMAGE` ask the image for its arguments.",
    )


def _bad(option: str, why: str, suggestion: str | None = None) -> Failure:
    return Failure(Cause.BAD_SPEC, f"engine.args: {option}: {why}", suggestion=suggestion)
