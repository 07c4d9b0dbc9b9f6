"""What is known of an engine's arguments beside its schemas."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.engines.schema.versions import Gone


class Owned(Value):
    """An argument that a field decides about.

    Attributes:
        field: The field, as it is written; empty = there is none.
        refused: Why the argument would break what moorage promises; empty = it may be given.
    """

    field: str
    refused: str = ""


class Rules(Value):
    """What is known of an engine's arguments beside its schemas.

    Attributes:
        title: The engine's name as people write it.
        owned: Arguments that fields decide about, by their first name.
        gone: Arguments that were dropped.
    """

    title: str
    owned: dict[str, Owned] = {}
    gone: dict[str, Gone] = {}
