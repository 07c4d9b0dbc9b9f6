"""The pinned revision of a companion of a model."""

from enum import StrEnum

from moorage.common.values import Value


class AssetRole(StrEnum):
    """The role of a download for the served model."""

    MODEL = "model"
    ADAPTER = "adapter"
    DRAFT = "draft"


class Pin(Value):
    """The pinned revision of one companion of the model.

    Attributes:
        name: Name of the adapter; `draft` for the draft model.
        revision: Commit on the hub, or the fingerprint of a local directory.
        rank: Largest rank of an adapter; None = unknown, or not an adapter.
    """

    role: AssetRole
    name: str
    source: str
    revision: str
    rank: int | None = None
