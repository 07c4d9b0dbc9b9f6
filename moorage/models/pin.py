"""Pinned revisions: of a companion of a model, and of files that are read in place."""

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


class LocalFiles(Value):
    """The files of a local directory of which its revision is the fingerprint, by name."""

    source: str
    revision: str
    names: tuple[str, ...]
