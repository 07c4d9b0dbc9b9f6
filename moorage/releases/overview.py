"""What a list of all models shows of a release."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from moorage.releases.release_row import ReleaseRow
from moorage.releases.requester import Requester


class ReleaseOverview(NamedTuple):
    """A release without its record, and what of that a list shows.

    Attributes:
        since: When it has come into its state, UTC.
        engine: Name of its engine; empty = unknown.
        keep_alive: How long it stays loaded without requests, as its spec says; empty = unknown.
        places: Where each seat is: its host, and the accelerators that it has there.
        surprises: How it differs from its plan.
    """

    row: ReleaseRow
    since: datetime
    engine: str = ""
    keep_alive: str = ""
    places: tuple[str, ...] = ()
    surprises: tuple[str, ...] = ()


class HistoryEntry(NamedTuple):
    """A release without its record, and what of that the history of its model shows.

    Attributes:
        rolled_back_to: Earlier release that it runs again; empty = it has a new plan.
        requester: None = not recorded.
        requested_by: The requester in one line, also of a release without a record.
        tpot: Median seconds per output token under its load; None = not measured.
    """

    row: ReleaseRow
    rolled_back_to: str = ""
    requester: Requester | None = None
    requested_by: str = ""
    tpot: float | None = None


def place_of_seat(host: str, accelerator_type: str, accelerators: Iterable[int]) -> str:
    """Where a seat is, such as `gpu-1 cuda:0,1`."""
    indexes = ",".join(map(str, accelerators))
    return f"{host} {accelerator_type}:{indexes}" if indexes else f"{host} cpu"
