"""Usage of callers, counted from the access log."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field

from moorage.common.strict_json import JsonError, decode
from moorage.common.values import Value
from moorage.gateway.token_limits import parse_token_limit

MOST_TOKENS = 10**9 - 1
"""Largest count of one request that is believed; the sums of a day stay far below 2**63."""

FAILED = range(500, 600)
"""Statuses of an engine or a gateway that fails; other errors are the caller's."""

USAGE = ("prompt_tokens", "completion_tokens")
"""Token counts of each request, as named in the access log."""

NUMBERS = ("requests", "failed", *USAGE)


class Usage(Value):
    """Requests of one caller to one model on one day.

    Attributes:
        caller: Name of the API key; empty = requests without one.
        model: The name that requests give: a model's or an adapter's.
        day: UTC, as `2026-11-23`.
        requests: Requests that reached an engine.
        failed: Requests among them that got a status of 500 to 599.
    """

    caller: str = Field(max_length=100)
    model: str = Field(max_length=200)
    day: str = Field(max_length=10)
    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Self) -> Self:
        """Sum of both, with the caller, model and day of this one."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in NUMBERS}
        return self.model_copy(update=sums)


def count(lines: Iterable[bytes]) -> tuple[Usage, ...]:
    """Sum the lines of an access log by caller, model and day.

    Skips requests that reached no engine, and unreadable lines: a line may be cut off when Envoy is
    killed.
    """
    found: dict[tuple[str, str, str], Usage] = {}
    for line in lines:
        if one := _usage(line):
            key = one.caller, one.model, one.day
            found[key] = found[key].plus(one) if key in found else one
    return tuple(found.values())


def spent(limits: Iterable[tuple[str, str]], used: Iterable[Usage]) -> tuple[str, ...]:
    """Callers that have used up their tokens.

    Args:
        limits: Callers with their limits; an empty limit = unlimited.
        used: Usage of the day.
    """
    tokens: Counter[str] = Counter()
    for one in used:
        tokens[one.caller] += one.prompt_tokens + one.completion_tokens
    allowed = {caller: parse_token_limit(limit) for caller, limit in limits if limit}
    return tuple(sorted(name for name, most in allowed.items() if tokens[name] >= most))


def _usage(line: bytes) -> Usage | None:
    try:
        entry: Any = decode(line)
        if not entry["endpoint"]:
            return None
        return Usage(
            caller=entry["caller"] or "",
            model=entry["model"],
            day=entry["at"][:10],
            requests=1,
            failed=int(entry["status"] in FAILED),
            **{name: _tokens(entry[name]) for name in USAGE},
        )
    except (JsonError, ValueError, LookupError, TypeError):
        return None


def _tokens(counted: Any) -> int:
    """A count of the log; an engine may report any number, or none."""
    return int(counted) if counted and 0 < counted <= MOST_TOKENS else 0
