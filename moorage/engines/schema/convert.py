"""Conversion of words to values of an argument, by the rules of vLLM's own types.

Source: `utils/argparse_utils.py`, `engine/arg_utils.py` and the launcher's `cli_args.py` of vLLM
0.32. `tests/engines/schema/` compares these rules with the parser itself.
"""

import difflib
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from moorage.common.printable import clipped
from moorage.common.strict_json import JsonError, decode
from moorage.common.values import Value
from moorage.engines.schema.argument import Argument, Kind
from moorage.spec.arguments import MULTIPLES, WRITTEN

MOST_SHOWN = 100
"""Most characters of an option to show in a message."""


class Problem(Value):
    """One mistake in the arguments; the suggestion says what to write instead."""

    option: str
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        return f"engine.args: {clipped(self.option, MOST_SHOWN)}: {self.message}"


READABLE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
STRING = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))')
READABLE_WITHIN = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
OBJECT = re.compile(r"(?s)\s*\{.*\}\s*")
NOTHING = ("", "None")
SHOWN = 60
MANY = 12


class NotAccepted(Exception):
    """An invalid value; the message says what is expected, `suggestion` names a close value."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


def problem_of(argument: Argument, word: str) -> Problem | None:
    """The problem with a value; None = the engine accepts it."""
    if argument.none and word in NOTHING:
        return None
    try:
        value = CONVERSIONS[argument.kind](word)
        _require_choice(argument, word, value)
        _require_keys(argument, value)
    except NotAccepted as error:
        return Problem(option=argument.name, message=str(error), suggestion=error.suggestion)
    return None


def _parsed(word: str, kind: type[int] | type[float], what: str) -> Any:
    try:
        return kind(word)
    except ValueError:
        raise NotAccepted(f"{_shown(word)} is not {what}") from None


def readable(word: str) -> int:
    """A whole number, optionally with a letter after it.

    Raises:
        NotAccepted: When the word is not such a number.
    """
    match, what = READABLE.fullmatch(word.strip()), "a whole number, such as 8192, 8k or 8K"
    if not match:
        return int(_parsed(word, int, what))
    number, letter = match.groups()
    if letter.islower():
        return int(float(number) * MULTIPLES[letter])
    if "." in number:
        message = f"{_shown(word)}: only whole numbers go with {letter}"
        raise NotAccepted(message, f"Did you mean `{number}{letter.lower()}`?")
    return int(_parsed(number, int, what)) * MULTIPLES[letter]


def _json(word: str) -> Any:
    try:
        return decode(word, WRITTEN)
    except JsonError as error:
        raise NotAccepted(f"{_shown(word)} is not JSON: it {error}") from None


def _object(word: str) -> dict[str, Any]:
    pieces = STRING.split(word)
    pieces[::2] = [READABLE_WITHIN.sub(lambda m: str(readable(m[0])), p) for p in pieces[::2]]
    value = _json("".join(pieces))
    if not isinstance(value, dict):
        raise NotAccepted(f"{_shown(word)} is not a JSON object")
    return value


def _adapter(word: str) -> Any:
    if not word or ("=" in word and "," not in word):
        return word
    value = _json(word)
    if not isinstance(value, dict) or not {"name", "path"} <= value.keys():
        message = f"{_shown(word)} is neither name=path nor a JSON object with name and path"
        raise NotAccepted(message)
    return value


CONVERSIONS: dict[Kind, Callable[[str], Any]] = {
    Kind.SWITCH: str,
    Kind.HELP: str,
    Kind.TEXT: str,
    Kind.INTEGER: partial(_parsed, kind=int, what="a whole number"),
    Kind.NUMBER: partial(_parsed, kind=float, what="a number"),
    Kind.READABLE_INTEGER: readable,
    Kind.READABLE_INTEGER_OR_AUTO: (
        lambda word: -1 if word.strip().lower() == "auto" else readable(word)
    ),
    Kind.JSON: _json,
    Kind.OBJECT: _object,
    Kind.TEXT_OR_OBJECT: lambda word: _json(word) if OBJECT.fullmatch(word) else word,
    Kind.ADAPTERS: _adapter,
}


def _require_choice(argument: Argument, word: str, value: Any) -> None:
    if not argument.choices or value in argument.choices:
        return
    if argument.any_case and _folded(word) in {_folded(str(c)) for c in argument.choices}:
        return
    choices = [str(choice) for choice in argument.choices]
    near = _nearest(word, choices)
    some = choices if len(choices) <= MANY else [*choices[:MANY], "..."]
    raise NotAccepted(f"{_shown(word)} is not one of {', '.join(some)}", near)


def _require_keys(argument: Argument, value: Any) -> None:
    if not argument.keys or not isinstance(value, dict):
        return
    for key in value:
        if key not in argument.keys:
            near = _nearest(key, argument.keys)
            raise NotAccepted(f"{_shown(key)} is no key of it", near)


def _nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(_folded(word), known, n=1)
    return f"Did you mean `{near[0]}`?" if near else ""


def _folded(word: str) -> str:
    return word.lower().replace("-", "_")


def _shown(word: str) -> str:
    return repr(word if len(word) <= SHOWN else word[:SHOWN] + "...")
