"""The revision that a companion of a model was pinned to."""

from enum import StrEnum

from moorage.common.values import Value


class AssetRole(StrEnum):
    """What something that is downloaded is to the model that is served."""

    MODEL = "model"
    ADAPTER = "adapter"
    DRAFT = "draft"


class Pin(Value):
    """What a companion of the model was pinned to.

    Attributes:
        name: Name of the adapter; `draft` for the draft model.
        revision: Commit on the hub, or the fingerprint of a local directory.
        rank: Largest rank of an adapter; None = unknown, or no adapter.
    """

    role: AssetRole
    name: str
    source: str
    revision: str
    rank: int | None = None
