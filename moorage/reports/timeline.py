"""The states of a release as a table."""

from collections.abc import Sequence
from datetime import datetime

from moorage.common.units import human_seconds
from moorage.releases.states import FINAL, Stay
from moorage.reports.document import Section

AT = "%Y-%m-%d %H:%M:%S"

STATE_COLUMNS = ("state", "since", "for", "why", "flow run", "requested by")


def timeline_section(states: Sequence[Stay], now: datetime | None = None) -> Section:
    """The states as a table; the last one lasts until `now` (None = its duration is left out).

    A flow run or a requester that all states share is left out: the release's facts have it.
    """
    rows = [
        (
            stay.state,
            f"{stay.since:{AT}}",
            _lasted(stay, now),
            stay.cause,
            stay.flow_run_id,
            stay.requested_by,
        )
        for stay in states
    ]
    columns = dict(zip(STATE_COLUMNS, zip(*rows, strict=True), strict=False))
    for name in ("flow run", "requested by"):
        if len(set(columns.get(name, ()))) == 1:
            del columns[name]
    cells = tuple(zip(*columns.values(), strict=True))
    return Section(title="States (UTC)", header=tuple(columns), rows=cells)


def _lasted(stay: Stay, now: datetime | None) -> str:
    if stay.seconds is not None:
        return human_seconds(stay.seconds)
    if now is None or stay.state in FINAL:
        return ""
    return f"{human_seconds((now - stay.since).total_seconds())} so far"
