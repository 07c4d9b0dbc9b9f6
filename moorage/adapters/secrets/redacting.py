"""What this process has read of secrets, and where text from outside is cleaned of them.

One place keeps the values: whoever reads a secret makes it known here, and from then on it is taken
out of every engine's log, every answer and every failure, whatever part of them it comes in.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TypeVar

from moorage.common.failures import Failure
from moorage.common.redaction import Redactor

AnyFailure = TypeVar("AnyFailure", bound=Failure)


class _Known:
    """Names by value; a name may have had several values, as when a secret was changed."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self.redactor = Redactor({})

    def add(self, values: Mapping[str, str]) -> None:
        """Take secrets in, by name."""
        names = {value: name for name, value in values.items()}
        with self._lock:
            if not names.items() <= self._names.items():
                self._names |= names
                self.redactor = Redactor(self._names)


_KNOWN = _Known()


def remember(values: Mapping[str, str]) -> None:
    """Make the values of secrets known, by name."""
    _KNOWN.add(values)


def redacted(text: str) -> str:
    """A text without the secrets that this process knows."""
    return _KNOWN.redactor(text)


def cleaned(failure: AnyFailure) -> AnyFailure:
    """The same failure, with everything that it tells redacted."""
    failure.detail = redacted(failure.detail)
    failure.log_tail = redacted(failure.log_tail)
    failure.evidence = redacted(failure.evidence)
    failure.args = tuple(redacted(one) if type(one) is str else one for one in failure.args)
    return failure
