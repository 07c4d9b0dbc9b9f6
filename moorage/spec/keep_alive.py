"""How long a model stays loaded without requests, in the grammar of Docker Model Runner."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

NEVER = "never"
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(h|ms|m|s))")
WHOLE = re.compile(rf"(?:{DURATION.pattern})+")
PATTERN = rf"^({NEVER}|0|-\d+|-?{WHOLE.pattern})$"
"""The same grammar for schemas."""


def keep_alive_seconds(written: str) -> float | None:
    """The seconds without a request after which a model sleeps; None = it never does.

    Args:
        written: `never`, `0`, a duration such as `30s`, `5m` or `1h30m`; anything negative = never.

    Raises:
        ValueError: It is none of these.
    """
    if written == NEVER:
        return None
    text = written.removeprefix("-")
    if text.isdecimal() and (text == "0" or text != written):
        seconds = float(text)
    elif WHOLE.fullmatch(text):
        seconds = sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(text))
    else:
        raise ValueError("write a duration such as `30s`, `5m` or `1h30m`, `0`, or `never`")
    return None if text != written else seconds


def _check(written: str) -> str:
    keep_alive_seconds(written)
    return written


KeepAlive = Annotated[str, AfterValidator(_check), Field(json_schema_extra={"pattern": PATTERN})]
