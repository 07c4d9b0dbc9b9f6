"""Facts about a release for lists of models and releases."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from moorage.releases.release_row import ReleaseRow
from moorage.releases.requester import Requester


class ReleaseOverview(NamedTuple):
    """A release without its record, and the record's facts for a list of models.

    Attributes:
        since: When it entered its state, UTC.
        engine: Name of its engine; empty = unknown.
        keep_alive: How long it stays loaded without requests, from its spec; empty = unknown.
        places: Host and accelerators of each seat.
        surprises: Deviations from its plan.
    """

    row: ReleaseRow
    since: datetime
    engine: str = ""
    keep_alive: str = ""
    places: tuple[str, ...] = ()
    surprises: tuple[str, ...] = ()


class HistoryEntry(NamedTuple):
    """A release without its record, and the record's facts for the history of its model.

    Attributes:
        rolled_back_to: Earlier release whose plan it reuses; empty = it has a new plan.
        requester: Requester of its deploy; None = not recorded, or not yet.
        requested_by: The requester in one line, also without a record; empty = unknown.
        tpot: Median seconds per output token under its load; None = not measured.
    """

    row: ReleaseRow
    rolled_back_to: str = ""
    requester: Requester | None = None
    requested_by: str = ""
    tpot: float | None = None


def place_of_seat(host: str, accelerator_type: str, accelerators: Iterable[int]) -> str:
    """Host and accelerators of a seat, such as `gpu-1 cuda:0,1`."""
    indexes = ",".join(map(str, accelerators))
    return f"{host} {accelerator_type}:{indexes}" if indexes else f"{host} cpu"
