"""How long a model stays loaded without requests, in the grammar of Docker Model Runner."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from moorage.common.units import DURATION, parse_duration

NEVER = "never"
LONGEST = 32
"""Most characters."""

PATTERN = rf"^({NEVER}|0|-\d+|-?{DURATION})$"
"""The same grammar as a pattern for schemas."""


def keep_alive_seconds(written: str) -> float | None:
    """Seconds without a request after which a model goes to sleep; None = never.

    Args:
        written: `never`, `0`, a duration such as `30s`, `5m` or `1h30m`; anything negative = never.

    Raises:
        ValueError: The text is none of these.
    """
    if written == NEVER:
        return None
    text = written.removeprefix("-")
    if text.isdecimal() and (text == "0" or text != written):
        seconds = float(text)
    else:
        try:
            seconds = parse_duration(text)
        except ValueError:
            raise ValueError("a duration such as `30s`, `5m` or `1h30m`, `0`, or `never`") from None
    return None if text != written else seconds


def _check(written: str) -> str:
    keep_alive_seconds(written)
    return written


def _as_text(written: object) -> object:
    """A whole number as text: YAML reads `0` and `-1` without quotes as numbers."""
    return str(written) if type(written) is int else written


KeepAlive = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_check),
    Field(max_length=LONGEST),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "maximum": 0},
                {"type": "string", "pattern": PATTERN, "maxLength": LONGEST},
            ]
        }
    ),
]
