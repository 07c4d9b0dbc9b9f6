"""Decodes untrusted JSON within limits of bytes, depth, values and digits."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from moorage.common.units import MIB, human_bytes

SHOWN = 24
"""Most characters of a refused number in its message."""

TOKEN = re.compile(rb'"(?>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)|[][{},]+', re.DOTALL)
"""The tokens that determine the shape: brackets, commas, and strings, which may contain brackets.
An unterminated string is a token too, so that any text is scanned only once."""

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair: alone it can be neither printed nor stored."""

OPENING, CLOSING, QUOTE = b"[{", b"]}", ord('"')

TOKENS_EACH = 4
"""Most tokens of one value: a name, its text or its two brackets, and a comma."""


class JsonError(ValueError):
    """A text is not JSON, or exceeds a limit. The message completes "the answer ..."."""


class NotJson(JsonError):
    """A text is not JSON at all, or only the beginning of it."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Upper limits of a text.

    Attributes:
        size: Bytes of the text.
        depth: Levels of nested lists and objects.
        entries: Values in total; a small value takes far more memory than its text.
        digits: Characters of one number.
        constants: Whether `NaN`, `Infinity` and `-Infinity` are accepted, as Python writes them.
    """

    size: int = 8 * MIB
    depth: int = 64
    entries: int = 250_000
    digits: int = 128
    constants: bool = False


LIMITS = JsonLimits()


def decode(content: bytes | str, limits: JsonLimits = LIMITS) -> Any:
    """Decode a text that may be hostile; bytes are UTF-8.

    Raises:
        JsonError: The text exceeds a limit; `NotJson` when it is not JSON.
    """
    text, data = _both(content, limits.size)
    _require_shape(data, limits)
    try:
        value = json.loads(
            text,
            parse_int=lambda number: int(_short(number, limits)),
            parse_float=lambda number: _finite(_short(number, limits)),
            parse_constant=float if limits.constants else _no_constant,
        )
    except RecursionError:
        raise JsonError(_too_deep(limits)) from None
    except json.JSONDecodeError as error:
        detail = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise NotJson(detail) from None
    if SURROGATE.search(data):
        _require_whole_characters(value)
    return value


def _both(content: bytes | str, most: int) -> tuple[str, bytes]:
    """The content as text and as bytes; too long content is refused before any copy."""
    if len(content) > most:
        raise JsonError(f"is larger than {human_bytes(most)}")
    try:
        if isinstance(content, bytes):
            return content.decode(), content
        data = content.encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise NotJson(f"is not UTF-8: {error.reason}, at {error.start}") from None
    if len(data) > most:
        raise JsonError(f"is larger than {human_bytes(most)}")
    return content, data


def _require_shape(data: bytes, limits: JsonLimits) -> None:
    """Check depth and number of values before building any value."""
    if len(data) < limits.entries and sum(map(data.count, OPENING)) <= limits.depth:
        return  # too few bytes and brackets to exceed a limit
    depth = tokens = 0
    entries = 1
    for match in TOKEN.finditer(data):
        word = match[0]
        for char in word[:1] if word[0] == QUOTE else word:
            tokens += 1
            if char in OPENING:
                depth += 1
                entries += 1
            elif char in CLOSING:
                depth -= 1
            elif char != QUOTE:
                entries += 1
            if depth > limits.depth:
                raise JsonError(_too_deep(limits))
            if entries > limits.entries or tokens > limits.entries * TOKENS_EACH:
                raise JsonError(f"has more than {limits.entries:,} values")


def _too_deep(limits: JsonLimits) -> str:
    return f"is nested more than {limits.depth} deep"


def _short(number: str, limits: JsonLimits) -> str:
    if len(number) > limits.digits:
        raise JsonError(f"has a number of {len(number):,} digits, {number[:SHOWN]}...")
    return number


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise JsonError(f"has a number that is too large, {number[:SHOWN]}")
    return value


def _no_constant(name: str) -> NoReturn:
    raise JsonError(f"has {name}, which is no number in JSON")


def _require_whole_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise JsonError("has half of a surrogate pair in a text") from None
