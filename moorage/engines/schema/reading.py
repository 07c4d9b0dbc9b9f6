"""Reads the user's words like the engine's parser: vLLM's, unless a schema says otherwise.

First it rewrites words as in `FlexibleArgumentParser.parse_args` (`utils/argparse_utils.py` of vLLM
0.32; `-O` as before 0.12 if the schema has no `--optimization-level`): dashes, `-O3`, and JSON by
keys. Then argparse, built from a schema, handles prefixes, values and the ends of options, as in
vLLM. `convert.py` checks values.
"""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any, NoReturn

from moorage.common.strict_json import JsonError, decode
from moorage.common.values import Value
from moorage.engines.schema.argument import Grammar, Schema
from moorage.engines.schema.convert import NotAccepted, Problem, problem_of, readable
from moorage.engines.schema.plain_words import plain_options, problems_of
from moorage.spec.arguments import WRITTEN
from moorage.spec.tokenize import is_option

LEVELS = ("0", "1", "2", "3")
"""Words that may follow `-O` as its level."""

NAME = re.compile(r"(?<=--)[^.=]*")
"""The part of an option in which `_` means `-`: up to the first key or value."""


def rewritten(words: Sequence[str], schema: Schema) -> list[str]:
    """The words that argparse receives; an exact parser receives them unchanged.

    Raises:
        NotAccepted: When an option with a key has no value; the message is the option.
    """
    if schema.grammar != Grammar.FLEXIBLE:
        return list(words)
    return _gathered(_levels([_dashed(word) for word in words], schema))


def _dashed(word: str) -> str:
    if word.startswith("--help="):
        return "--help"
    if not word.startswith("--"):
        return word
    return NAME.sub(lambda match: match[0].replace("_", "-"), word, count=1)


def _levels(words: Sequence[str], schema: Schema) -> list[str]:
    """The words with `-O3`, `-O=3` and `-O 3` replaced by the full option."""
    option, keys = _level_option(schema)
    done: list[str] = []
    for index, word in enumerate(words):
        apart = word == "-O" and words[index + 1 : index + 2] and words[index + 1] in LEVELS
        if word.startswith("-O") and word != "-O" and not (keys and word.startswith("-O.")):
            done += [option, word[2:].removeprefix("=")]
        else:
            done.append(option if apart else word)
    return done


def _level_option(schema: Schema) -> tuple[str, bool]:
    """The option that `-O` abbreviates, and whether `-O` may have keys itself (`-O.level 3`)."""
    if "--optimization-level" in schema.options:
        return "--optimization-level", False
    short = schema.options.get("-O")
    return ("-O.mode" if short and "mode" in short.keys else "-O.level"), True


def _gathered(words: Sequence[str]) -> list[str]:
    """The words with values by key (`--a.b c`, `--a.b+ c,d`) joined to JSON at the end."""
    kept: list[str] = []
    objects: dict[str, dict[str, Any]] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-") or "." not in name:
            kept.append(word)
            continue
        if not equals:
            try:
                value = next(rest)
            except StopIteration:
                raise NotAccepted(name) from None
        if name.endswith("+"):
            name, value = name[:-1], json.dumps(value.split(","))
        option, *keys = name.split(".")
        nested = reduce(lambda inner, key: {key: inner}, reversed(keys), _value(value))
        _merge(objects.setdefault(option, {}), nested)
    for option, content in objects.items():
        kept += [option, json.dumps(content)]
    return kept


def _value(text: str) -> Any:
    try:
        return decode(text, WRITTEN)
    except JsonError:
        pass
    try:
        return readable(text)
    except NotAccepted:
        return text


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        there = into.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            _merge(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            there += value
        else:
            into[key] = value


MODEL = "model"
"""Placeholder for the model, which comes before the user's words."""


class Reading(Value):
    """The options and problems in a command line.

    Attributes:
        given: Recognised options, prefixes completed, in the user's order.
        stray: Words that belong to no option.
    """

    given: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@lru_cache(maxsize=64)
def read(words: tuple[str, ...], schema: Schema) -> Reading:
    """Read words for one version; reading stops at a mistake that hides the following words.

    Cached, because several steps of a deploy check the same arguments for the same version.
    """
    if schema.grammar == Grammar.WORDS:
        return _read_plain(words, schema)
    found = argparse.Namespace(given=[], problems=[], schema=schema)
    try:
        line = [MODEL, *rewritten(words, schema)]
        rest = _parser(schema).parse_known_args(line, found)[1]
    except NotAccepted as error:
        last = Problem(option=str(error), message="its value is missing")
    except argparse.ArgumentError as error:
        last = _missing(error, schema)
    except _Refused as error:
        last = _ambiguous(words, schema) or Problem(option="", message=str(error))
    else:
        unknown, stray = _left(rest)
        problems = tuple(found.problems)
        return Reading(given=tuple(found.given), unknown=unknown, stray=stray, problems=problems)
    return Reading(problems=(*found.problems, last))


def _read_plain(words: Sequence[str], schema: Schema) -> Reading:
    given, unknown, stray, problems = list[str](), list[str](), list[str](), list[Problem]()
    for option, argument, values in plain_options(words, schema):
        name, equals, value = option.partition("=")
        if argument:
            given.append(option)
            problems += problems_of(option, argument, values)
        elif not is_option(option):
            stray.append(option)
        elif equals and name in schema.options:
            message = "its value comes after a blank, not after `=`"
            fix = f"Write `{name} {value}`."
            problems.append(Problem(option=name, message=message, suggestion=fix))
        else:
            unknown.append(option)
    return Reading(
        given=tuple(given),
        unknown=tuple(dict.fromkeys(unknown)),
        stray=tuple(stray),
        problems=tuple(problems),
    )


class _Refused(Exception):
    """Raised with argparse's message instead of exiting the program."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Refused(message)


class _Given(argparse.Action):
    """Records that an argument was given, and the problems of its values."""

    def __call__(self, _: object, namespace: Any, values: Any, option: str | None = None) -> None:
        namespace.given.append(option)
        words = values if isinstance(values, list) else [values]
        argument = namespace.schema.options[option]
        found = (problem_of(argument, word) for word in words if word is not None)
        namespace.problems += filter(None, found)


@lru_cache(maxsize=4)
def _parser(schema: Schema) -> argparse.ArgumentParser:
    parser = _Parser(
        add_help=False,
        allow_abbrev=schema.grammar == Grammar.FLEXIBLE,
        exit_on_error=False,
        conflict_handler="resolve",
        usage="",
    )
    parser.add_argument("model", nargs="?")
    for index, argument in enumerate(schema.arguments):
        count = argument.values if argument.takes_value else 0
        parser.add_argument(
            *argument.options, action=_Given, nargs=count, metavar=argument.name, dest=str(index)
        )
    return parser


def _missing(error: argparse.ArgumentError, schema: Schema) -> Problem:
    names = (error.argument_name or "").split("/")
    argument = next((schema.options[name] for name in names if name in schema.options), None)
    if argument is None:
        return Problem(option=error.argument_name or "", message=error.message)
    if not argument.takes_value:
        off = next((name for name in argument.options if name.startswith("--no-")), "")
        fix = f"Write `{argument.name}`" + (f" or `{off}`." if off else ", or leave it out.")
        message = "it is a switch and takes no value"
        return Problem(option=argument.name, message=message, suggestion=fix)
    count = "its value is missing"
    if isinstance(argument.values, int):
        count = f"it needs {argument.values} values"
    return Problem(option=argument.name, message=count)


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
    """Unknown options, and stray words before the first; later words may be their values."""
    first = next((i for i, word in enumerate(rest) if is_option(word)), len(rest))
    unknown = [word.partition("=")[0] for word in rest if is_option(word)]
    return tuple(dict.fromkeys(unknown)), tuple(rest[:first])
