"""The secrets that this process has read, and their removal from text.

Code that reads a secret registers it here. From then on it is removed from every engine's log,
every answer and every part of a failure.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TypeVar

from moorage.common.failures import Failure
from moorage.common.redaction import Redactor

AnyFailure = TypeVar("AnyFailure", bound=Failure)


class _Known:
    """Names by value. A changed secret has several values."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self.redactor = Redactor({})

    def add(self, values: Mapping[str, str]) -> None:
        """Register secrets by name."""
        names = {value: name for name, value in values.items()}
        with self._lock:
            if not names.items() <= self._names.items():
                self._names |= names
                self.redactor = Redactor(self._names)


_KNOWN = _Known()


def remember(values: Mapping[str, str]) -> None:
    """Register the values of secrets by name."""
    _KNOWN.add(values)


def redact(text: str) -> str:
    """A text without the secrets that this process knows."""
    return _KNOWN.redactor(text)


def redact_failure(failure: AnyFailure) -> AnyFailure:
    """The same failure with all its text redacted."""
    failure.detail = redact(failure.detail)
    failure.log_tail = redact(failure.log_tail)
    failure.evidence = redact(failure.evidence)
    failure.args = tuple(redact(one) if type(one) is str else one for one in failure.args)
    return failure
