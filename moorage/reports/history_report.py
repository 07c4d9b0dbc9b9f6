"""The history of releases as documents: states and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from moorage.common.units import human_seconds
from moorage.operations.history.changes import Change
from moorage.operations.history.comparison import Comparison
from moorage.releases.states import FINAL, Stay
from moorage.reports.document import Document, Section

PARTS = {
    "spec": "Spec",
    "revision": "Revisions",
    "image": "Image",
    "flags": "Flags",
    "environment": "Environment",
    "placement": "Placement",
    "measured": "Measured",
}
"""Parts of a comparison, and what they are called."""

STATE_COLUMNS = ("state", "since", "for", "why", "flow run", "requested by")


def comparison_document(comparison: Comparison) -> Document:
    """What differs, part by part; parts without a difference are left out."""
    same = "Both run the same in the same place." if comparison.is_same else ""
    header = ("", comparison.before, comparison.after, "")
    parts = (
        Section(title=title, header=header, rows=tuple(map(_row, getattr(comparison, name))))
        for name, title in PARTS.items()
    )
    title = f"{comparison.before} and {comparison.after}"
    return Document(title=title, sections=(Section(text=same), *parts))


def timeline_section(states: Sequence[Stay], now: datetime | None = None) -> Section:
    """The states as a table.

    Args:
        states: As `stays` returns them.
        now: The duration of the last state is counted up to here; None = it is left out.
    """
    # A ledger of an older moorage has no requesters.
    width = len(STATE_COLUMNS) - (not any(stay.requested_by for stay in states))
    rows = tuple(
        (
            stay.state,
            f"{stay.since:%Y-%m-%d %H:%M:%S}",
            _lasted(stay, now),
            stay.cause,
            stay.flow_run_id,
            stay.requested_by,
        )[:width]
        for stay in states
    )
    return Section(title="States (UTC)", header=STATE_COLUMNS[:width], rows=rows)


def _row(change: Change) -> tuple[str, ...]:
    origins = [str(one) for one in (change.origin_before, change.origin_after) if one]
    parts = [" -> ".join(dict.fromkeys(origins))]
    parts += [f"only {', '.join(change.where)}"] if change.where else []
    parts += [f"{change.ratio:g} times"] if change.ratio is not None else []
    note = "; ".join(part for part in parts if part)
    return change.what, _cell(change.before), _cell(change.after), note


def _cell(text: str | None) -> str:
    return "-" if text is None else text or "(on)"


def _lasted(stay: Stay, now: datetime | None) -> str:
    if stay.seconds is not None:
        return human_seconds(stay.seconds)
    if now is None or stay.state in FINAL:
        return ""
    return f"{human_seconds((now - stay.since).total_seconds())} so far"
