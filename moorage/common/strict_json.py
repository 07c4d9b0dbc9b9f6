"""JSON that somebody else wrote, decoded within limits: of bytes, depth, values and numbers."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from moorage.common.units import MIB, human_bytes

SHOWN = 24
"""Characters of a refused number that its message repeats."""

TOKEN = re.compile(rb'"(?>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)|[][{},]+', re.DOTALL)
"""What builds up a text: brackets and commas, and strings, which may hold brackets of their own. A
string that never ends is a token too: the text is read once, whatever it holds."""

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a character beyond the first 65,536: alone it can be neither printed nor stored."""

OPENING, CLOSING, QUOTE = b"[{", b"]}", ord('"')
OPENING_BYTES = (b"[", b"{")

TOKENS_EACH = 4
"""Tokens that a value takes at most: a name, its text or its two brackets, and a comma."""


class JsonError(ValueError):
    """A text is no JSON, or more than is accepted. The message completes "the answer ..."."""


class NotJson(JsonError):
    """A text is no JSON at all, or only the beginning of it."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """What a text may be at most.

    Attributes:
        size: Bytes of it.
        depth: Lists and objects inside each other.
        entries: Values in all; a small value takes far more memory than text.
        digits: Characters of one number.
        constants: Whether `NaN`, `Infinity` and `-Infinity` are numbers, as Python writes them.
    """

    size: int = 8 * MIB
    depth: int = 64
    entries: int = 250_000
    digits: int = 128
    constants: bool = False


LIMITS = JsonLimits()


def decode(content: bytes | str, limits: JsonLimits = LIMITS) -> Any:
    """Decode a text that may be hostile.

    Args:
        content: The text, UTF-8 where it is bytes.

    Raises:
        JsonError: It is beyond a limit; `NotJson` when it is no JSON.
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
    """The text and its bytes; one that is too long is not even copied."""
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
    """Check depth and number of values before anything is built of them."""
    if len(data) < limits.entries and sum(map(data.count, OPENING_BYTES)) <= limits.depth:
        return  # so few bytes and brackets cannot hold too many, wherever they stand
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
