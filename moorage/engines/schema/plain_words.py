"""Reads words as llama-server does: an option and each of its values are separate words."""

from collections.abc import Iterator, Sequence

from moorage.engines.schema.argument import Argument, Schema
from moorage.engines.schema.convert import Problem, problem_of
from moorage.spec.tokenize import is_option


def plain_options(
    words: Sequence[str], schema: Schema
) -> Iterator[tuple[str, Argument | None, tuple[str, ...]]]:
    """Each option with its argument and its values, in order.

    The word after an option is its value, whatever it looks like. A word that is not a known option
    has no argument; its values are the words up to the next option.
    """
    rest = list(words)
    while rest:
        word = rest.pop(0)
        # The parser accepts `_` for `-` (`common_params_parse_ex` in `common/arg.cpp`).
        name = word.replace("_", "-") if word.startswith("--") else word
        argument = schema.options.get(name)
        count = _count(argument) if argument else _words_of_nothing(rest)
        values, rest = tuple(rest[:count]), rest[count:]
        yield (name if argument else word), argument, values


def _count(argument: Argument) -> int:
    if isinstance(argument.values, int):
        return argument.values
    return 1 if argument.takes_value else 0


def _words_of_nothing(rest: Sequence[str]) -> int:
    return next((index for index, word in enumerate(rest) if is_option(word)), len(rest))


def problems_of(option: str, argument: Argument, values: Sequence[str]) -> tuple[Problem, ...]:
    """The problems of an option that the engine knows."""
    wanted = _count(argument)
    if len(values) < wanted:
        missing = "its value is missing" if wanted == 1 else f"it needs {wanted} values"
        return (Problem(option=option, message=missing),)
    found = (problem_of(argument, value) for value in values)
    return tuple(one.model_copy(update={"option": option}) for one in found if one)
