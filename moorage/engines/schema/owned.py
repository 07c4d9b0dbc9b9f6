"""Arguments for which the spec or the fleet has a field."""

from __future__ import annotations

from moorage.values import Value


class Owned(Value):
    """An argument that a field decides about.

    Attributes:
        field: The field, as it is written; empty = there is none.
        refused: Why the argument would break what moorage promises; empty = it may be given.
    """

    field: str
    refused: str = ""
