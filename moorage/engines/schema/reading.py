"""Reading the user's words as the engine's parser would: argparse, built from a schema.

vLLM's parser is argparse, so what is a prefix, a value or an option's end is decided by argparse
here too; only values are judged by rules of our own (`convert.py`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from moorage.common.values import Value
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.convert import NotAccepted, problem_of
from moorage.engines.schema.problem import Problem
from moorage.engines.schema.writing import rewritten
from moorage.spec.tokenize import is_option

MODEL = "model"
"""Stands where the model stands: before the user's words."""


class Reading(Value):
    """What was read.

    Attributes:
        given: Options that were recognised, prefixes in full, in the user's order.
        unknown: Options that the engine does not know.
        stray: Words that belong to no option.
        problems: What is wrong with the others.
    """

    given: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read(words: Sequence[str], schema: Schema) -> Reading:
    """Read words; a mistake that hides what follows it ends the reading.

    Args:
        words: As `user_tokens` made them.
        schema: What the engine knows.
    """
    return Reader(schema).read(words)


class Reader:
    """Reads many lines for one version; building its parser takes some milliseconds.

    Args:
        schema: What the engine knows.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._problems: list[Problem] = []
        self._parser = _parser(schema, self._problems)

    def read(self, words: Sequence[str]) -> Reading:
        """Read words, as `user_tokens` made them."""
        self._problems.clear()
        try:
            line = [MODEL, *rewritten(words, self._schema)]
            found, rest = self._parser.parse_known_args(line, argparse.Namespace(given=[]))
        except NotAccepted as error:
            return self._ended(Problem(option=str(error), message="its value is missing"))
        except argparse.ArgumentError as error:
            return self._ended(_missing(error, self._schema))
        except _Refused as error:
            problem = _ambiguous(words, self._schema)
            return self._ended(problem or Problem(option="", message=str(error)))
        unknown, stray = _left(rest)
        return Reading(
            given=tuple(found.given),
            unknown=unknown,
            stray=stray,
            problems=tuple(self._problems),
        )

    def _ended(self, problem: Problem) -> Reading:
        return Reading(problems=(*self._problems, problem))


class _Refused(Exception):
    """What argparse says instead of ending the program."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Refused(message)


class _Given(argparse.Action):
    """Notes that an argument was given."""

    def __call__(self, _: object, namespace: Any, __: object, option: str | None = None) -> None:
        namespace.given.append(option)


def _parser(schema: Schema, problems: list[Problem]) -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, exit_on_error=False, conflict_handler="resolve", usage="")
    parser.add_argument("model", nargs="?")
    for index, argument in enumerate(schema.arguments):
        more: dict[str, Any] = {"nargs": argument.values if argument.takes_value else 0}
        if argument.takes_value:
            more["type"] = _judge(argument, problems)
        parser.add_argument(
            *argument.options, action=_Given, metavar=argument.name, dest=str(index), **more
        )
    return parser


def _judge(argument: Argument, problems: list[Problem]) -> Callable[[str], str]:
    def judge(word: str) -> str:
        if problem := problem_of(argument, word):
            problems.append(problem)
        return word

    return judge


def _missing(error: argparse.ArgumentError, schema: Schema) -> Problem:
    names = (error.argument_name or "").split("/")
    argument = next((schema.options[name] for name in names if name in schema.options), None)
    if argument is None:
        return Problem(option=error.argument_name or "", message=error.message)
    if argument.kind in (Kind.SWITCH, Kind.HELP):
        return Problem(
            option=argument.name,
            message="it is a switch and takes no value",
            suggestion=_switch(argument),
        )
    count = "its value is missing"
    if isinstance(argument.values, int):
        count = f"it needs {argument.values} values"
    return Problem(option=argument.name, message=count)


def _switch(argument: Argument) -> str:
    off = next((name for name in argument.options if name.startswith("--no-")), "")
    return f"Write `{argument.name}`" + (f" or `{off}`." if off else ", or leave it out.")


def _ambiguous(words: Iterable[str], schema: Schema) -> Problem | None:
    for word in rewritten(tuple(words), schema):
        name = word.partition("=")[0]
        fits = [option for option in schema.options if option.startswith(name)]
        if is_option(word) and name not in schema.options and len(fits) > 1:
            suggestion = "Did you mean " + " or ".join(f"`{option}`" for option in fits[:4]) + "?"
            message = f"it is short for {len(fits)} arguments"
            return Problem(option=name, message=message, suggestion=suggestion)
    return None


def _left(rest: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Unknown options, and words before the first of them; the rest may be their values."""
    first = next((i for i, word in enumerate(rest) if is_option(word)), len(rest))
    unknown = [word.partition("=")[0] for word in rest if is_option(word)]
    return tuple(dict.fromkeys(unknown)), tuple(rest[:first])
