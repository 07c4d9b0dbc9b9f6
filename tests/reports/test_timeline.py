from __future__ import annotations

from datetime import timedelta

from moorage.releases.states import ReleaseState, Stay
from moorage.reports.timeline import timeline_section
from tests.builders import NOON

PENDING = Stay(state=ReleaseState.PENDING, since=NOON, seconds=100, flow_run_id="a")
LATER = NOON + timedelta(seconds=100)
FAILED = Stay(state=ReleaseState.ERROR, since=LATER, cause="interrupted", flow_run_id="b")
STARTING = Stay(state=ReleaseState.STARTING, since=NOON)


def test_the_table_shows_when_how_long_why_and_which_flow_run() -> None:
    assert timeline_section([PENDING, FAILED]).rows == (
        ("pending", "2026-03-01 12:00:00", "1 min 40 s", "", "a"),
        ("error", "2026-03-01 12:01:40", "", "interrupted", "b"),
    )


def test_what_lasts_is_counted_to_now_unless_it_lasts_for_good() -> None:
    now = NOON + timedelta(hours=3)
    assert timeline_section([PENDING, STARTING], now).rows[-1][2] == "3 h 00 min so far"
    assert timeline_section([PENDING, STARTING]).rows[-1][2] == ""
    assert timeline_section([PENDING, FAILED], now).rows[-1][2] == ""


def test_the_table_names_the_requester_where_one_is_recorded() -> None:
    requested = FAILED.model_copy(update={"requested_by": "ann@build, command line"})
    section = timeline_section([PENDING, requested])
    assert section.header[-1] == "requested by"
    assert section.rows[-1][-1] == "ann@build, command line"
    assert timeline_section([PENDING, FAILED]).header[-1] == "flow run"
