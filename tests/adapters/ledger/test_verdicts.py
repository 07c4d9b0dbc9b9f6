"""Verdicts of placements are written apart from the records that they belong to."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import func, select, update

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.database import gate, open_database, reading
from moorage.adapters.ledger.tables import RELEASES, VERDICTS
from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.placement.explanation import Verdict
from moorage.readiness.acceptance import Acceptance, LoadFigures
from moorage.releases.release import Release
from moorage.releases.requester import Requester
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_releases import running, starting
from tests.builders import a_placement, a_release, a_spec

HOSTS = tuple(Verdict(f"host-{number}", needed=number) for number in range(1000))


def placed(identity: str) -> Release:
    placement = a_placement(a_spec()).model_copy(update={"verdicts": HOSTS})
    return a_release(identity, placement=placement)


def test_one_release_has_its_verdicts_and_those_of_a_list_have_none(ledger: Ledger) -> None:
    identity = starting(ledger)
    ledger.releases.take_over(placed(identity))
    own = ledger.releases
    for one in (own.get(identity), own.running("tiny"), own.newest("tiny")):
        assert one
        assert one.release == placed(identity)
    for row in (*own.of_model("tiny"), *own.in_states([ReleaseState.RUNNING])):
        assert row.placement
        assert row.placement.verdicts == ()
        assert row.placement.seats == placed(identity).placement.seats  # type: ignore[union-attr]


def test_verdicts_outlive_a_change_of_the_spec_and_make_no_record_long(
    ledger: Ledger, url: str
) -> None:
    identity = starting(ledger)
    ledger.releases.take_over(placed(identity))
    ledger.releases.revise(ledger.releases.of_model("tiny")[0], a_spec(labels={"team": "search"}))
    row = ledger.releases.get(identity)
    assert row.placement
    assert row.release
    assert (row.release.spec.labels, row.placement.verdicts) == ({"team": "search"}, HOSTS)
    engine = open_database(url)
    with reading(engine) as connection:
        kept = select(func.length(VERDICTS.c.verdicts))
        assert 0 < (connection.scalar(kept) or 0) < 20_000
        assert len(str(connection.scalar(select(RELEASES.c.record)))) < 20_000
    engine.dispose()


def test_a_record_of_another_version_keeps_its_shape(ledger: Ledger, url: str) -> None:
    identity = starting(ledger)
    ledger.releases.take_over(placed(identity))
    engine = open_database(url)
    with gate(engine) as connection:
        connection.execute(update(RELEASES).values(record={"placement": ["other"]}))
    engine.dispose()
    assert ledger.releases.get(identity).foreign_record == {"placement": ["other"]}
    (shown,) = ledger.overviews.current()
    assert (shown.row.id, shown.places, shown.surprises) == (identity, (), ())
    (entry,) = ledger.overviews.history("tiny")
    assert (entry.row.id, entry[1:]) == (identity, ("", None, "", None))


def test_an_overview_has_what_a_list_shows_of_a_record(ledger: Ledger) -> None:
    identity = starting(ledger)
    ledger.releases.take_over(placed(identity))
    (shown,) = ledger.overviews.current()
    assert shown.places == ("gpu-1 cuda:0",)
    assert shown.keep_alive == a_spec().keep_alive
    assert shown.since == ledger.releases.transitions(identity)[-1].at
    assert shown.row == replace(ledger.releases.get(identity), release=None)


def test_an_overview_lists_what_serves_beside_what_begins(ledger: Ledger) -> None:
    first = running(ledger)
    begun, failed = starting(ledger), starting(ledger, "other")
    ledger.releases.fail(failed, "no-fit")
    assert [one.row.id for one in ledger.overviews.current()] == [failed, first, begun]
    assert [one.row.id for one in ledger.overviews.not_finished()] == [begun]


def test_a_history_has_what_it_shows_of_records_newest_first(ledger: Ledger) -> None:
    requester, load = Requester(user="ann", host="box"), LoadFigures(requests=4, tpot_p50=0.02)
    first = starting(ledger)
    ledger.releases.take_over(a_release(first, acceptance=Acceptance(figures=load)))
    again = starting(ledger)
    with writing_as(Author("a run", requested_by="bob on laptop")):
        begun = ledger.releases.begin(a_spec(name="tiny"), "", "a run")
        ledger.releases.move(begun, ReleaseState.SCHEDULED)
    record = a_release(again, replaced=first, rolled_back_to=first, requester=requester)
    ledger.releases.take_over(record)
    found = ledger.overviews.history("tiny")
    assert [one[1:] for one in found] == [
        ("", None, "bob on laptop", None),
        (first, requester, requester.summary, None),
        ("", None, "", 0.02),
    ]
    rows = [ledger.releases.get(one) for one in (begun, again, first)]
    assert [one.row for one in found] == [replace(one, release=None) for one in rows]
    assert ledger.overviews.history("other") == []
