"""Labels on containers, by which a ledger recognises its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who observes containers needs no placement
    from moorage.placement.placement import Seat

LABEL_LEDGER = "moorage.ledger"
LABEL_MODEL = "moorage.model"
LABEL_RELEASE = "moorage.release"
LABEL_ROLE = "moorage.role"
LABEL_REPLICA = "moorage.replica"
LABEL_HELPER = "moorage.helper"
"""Label on every helper container; its value is the purpose."""


def labels_of(ledger: str, model: str, release: str, seat: Seat) -> dict[str, str]:
    """Labels that mark a container as this ledger's."""
    return {
        LABEL_LEDGER: ledger,
        LABEL_MODEL: model,
        LABEL_RELEASE: release,
        LABEL_ROLE: seat.role,
        LABEL_REPLICA: str(seat.replica),
    }
