"""Arguments as users write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.values import LARGEST
from moorage.spec.abbreviations import in_full
from moorage.spec.tokenize import in_one_writing, is_option, user_tokens

__all__ = [
    "argument",
    "arguments",
    "has_argument",
    "in_one_writing",
    "is_option",
    "is_written",
    "json_argument",
    "switch",
    "user_tokens",
    "whole_number",
]

MULTIPLES = {
    **{"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40},
}
"""What vLLM makes of a letter behind a number (`utils/argparse_utils.py`)."""

WRITTEN = JsonLimits(size=128 * 1024, entries=10_000, constants=True)
"""What JSON in an argument may be at most."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")


def is_written(tokens: Sequence[str], flag: str, *aliases: str) -> bool:
    """Whether the user decides about an option: under any name, by key, or against it.

    `--speculative-config.method` decides about `--speculative-config`, and `--no-omni` about
    `--omni`.
    """
    names = {flag, *aliases, flag.replace("--", "--no-", 1)}
    return any(name.partition(".")[0] in names for name, _ in _options(tokens))


def has_argument(tokens: Sequence[str], flag: str) -> bool:
    """Whether the user's words contain an option, in any writing (`--a b`, `--a=b`, `--a_b`)."""
    if not flag.startswith("--"):
        return False
    wanted = flag.partition("=")[0].replace("_", "-")
    return any(in_full(token.partition("=")[0].replace("_", "-")) == wanted for token in tokens)


def argument(tokens: Sequence[str], *names: str) -> str | None:
    """The value of an option in the user's words, in any writing; the last one counts.

    Args:
        tokens: As `user_tokens` made them.
        names: The option and its other names, such as `--tensor-parallel-size` and `-tp`.

    Returns:
        Its value, empty when it has none; None when it is not there.
    """
    values = arguments(tokens, *names)
    return None if values is None else next(iter(values), "")


def arguments(tokens: Sequence[str], *names: str) -> tuple[str, ...] | None:
    """All values of an option that takes several; None when it is not there."""
    found = [values for name, values in _options(tokens) if name in names]
    return found[-1] if found else None


def switch(tokens: Sequence[str], flag: str) -> bool | None:
    """Whether an option is switched on (`--flag`) or off (`--no-flag`); None without it."""
    off = flag.replace("--", "--no-", 1)
    found = [name == flag for name, _ in _options(tokens) if name in (flag, off)]
    return found[-1] if found else None


def whole_number(tokens: Sequence[str], *names: str) -> int | None:
    """The value of an option as vLLM reads numbers: `8192`, `8K` and `8.192k`; None without it.

    Raises:
        Failure: `BAD_SPEC` when it is no number.
    """
    value = argument(tokens, *names)
    if value is None:
        return None
    number = _number(value)
    if number is None:
        raise Failure(Cause.BAD_SPEC, f"engine.args: {names[0]}: {value[:60]!r} is not a number")
    if number > LARGEST:
        detail = f"engine.args: {names[0]}: {value[:60]} is more than {LARGEST}"
        raise Failure(Cause.BAD_SPEC, detail)
    return number


def json_argument(tokens: Sequence[str], *names: str) -> dict[str, Any] | None:
    """The value of an option that takes JSON, whole or by keys (`--flag.key value`).

    Where there are keys, they alone count: vLLM puts them behind all the rest, as JSON of their own
    (`utils/argparse_utils.py:FlexibleArgumentParser.parse_args`).

    Raises:
        Failure: `BAD_SPEC` when it is no JSON object.
    """
    whole: dict[str, Any] | None = None
    keyed: dict[str, Any] = {}
    for name, values in _options(tokens):
        option, _, path = name.partition(".")
        if option not in names:
            continue
        value = _json(values[0]) if values else True
        if path:
            keyed = _merged(keyed, path.split("."), value)
        elif isinstance(value, dict):
            whole = value
        else:
            excerpt = repr(value)[:60]
            raise Failure(Cause.BAD_SPEC, f"engine.args: {names[0]}: not a JSON object: {excerpt}")
    return keyed or whole


def _options(tokens: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each option under its full name with dashes, and its values."""
    start = None
    for index, token in enumerate((*tokens, "--")):
        if token != "--" and not is_option(token):
            continue
        if start is not None:
            name, equals, value = tokens[start].partition("=")
            own = (value,) if equals else ()
            yield _dashed(name), (*own, *tokens[start + 1 : index])
        start = index


def _dashed(name: str) -> str:
    option, dot, path = name.partition(".")
    return in_full(option.replace("_", "-")) + dot + path


def _json(text: str) -> Any:
    try:
        return decode(text, WRITTEN)
    except JsonError:
        number = _number(text)
        return text if number is None else number


def _number(text: str) -> int | None:
    """A number that may have a letter behind it; None = it is none."""
    match = NUMBER.fullmatch(text.strip())
    if not match or (match[2].isupper() and "." in match[1]):
        return None
    return int(float(match[1]) * MULTIPLES.get(match[2], 1))


def _merged(content: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    key, *rest = path
    if not rest and key.endswith("+"):
        there = content.get(key[:-1])
        return {**content, key[:-1]: [*(there if isinstance(there, list) else ()), *_parts(value)]}
    if not rest:
        return {**content, key: value}
    below = content.get(key)
    return {**content, key: _merged(below if isinstance(below, dict) else {}, rest, value)}


def _parts(value: Any) -> Sequence[str]:
    return str(value).split(",")
