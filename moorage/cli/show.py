"""`moorage show`: the record of a release, and its way through the states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from moorage.cli.output import dump, out
from moorage.cli.render import page
from moorage.releases.release import ReleaseRow
from moorage.releases.timeline import Stay, Transition, stays
from moorage.reports.document import Document
from moorage.reports.history_report import timeline_section
from moorage.reports.record import release_document


def show(row: ReleaseRow, log: Sequence[Transition], *, as_json: bool) -> None:
    """Print all that is known of a release.

    Args:
        row: The release.
        log: Its transitions.
        as_json: For a program.
    """
    told = stays(row.created_at, row.flow_run_id, log)
    if row.foreign_record is not None:
        return dump({**row.foreign_record, "states": _states(told)})
    if as_json:
        return dump({**_content(row), "states": _states(told)})
    now, record = datetime.now(UTC), row.as_it_runs
    if record is not None:
        page(release_document(record, told, now))
    else:
        cause = row.cause or "in progress"
        out.print(f"{row.id} is {row.state} ({cause}); it has no record.", soft_wrap=True)
        page(Document(title=row.id, sections=(timeline_section(told, now),)))
    if row.flow_run_id and (base := _prefect_pages()):
        out.print(f"\n{base}/runs/flow-run/{row.flow_run_id}", soft_wrap=True, highlight=False)
    return None


def _content(row: ReleaseRow) -> dict[str, Any]:
    record = row.as_it_runs
    if record is None:
        return row.model_dump(mode="json", exclude={"release"})
    return {**record.model_dump(mode="json"), "state": row.state, "cause": row.cause}


def _states(told: Sequence[Stay]) -> list[dict[str, Any]]:
    base = _prefect_pages()
    return [{**stay.model_dump(mode="json"), "flow_run_url": _url(base, stay)} for stay in told]


def _url(base: str, stay: Stay) -> str:
    return f"{base}/runs/flow-run/{stay.flow_run_id}" if base and stay.flow_run_id else ""


def _prefect_pages() -> str:
    """Where Prefect shows its pages; empty where no server is set: a temporary one has none."""
    api = os.environ.get("PREFECT_API_URL", "")
    pages = os.environ.get("PREFECT_UI_URL") or api.rstrip("/").removesuffix("/api")
    return pages.rstrip("/")
