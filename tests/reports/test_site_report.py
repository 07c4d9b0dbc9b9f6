"""The site as one page: nothing is loaded, nothing runs, whatever the ledger holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from moorage.common.failures import Cause
from moorage.common.units import GIB
from moorage.inventory.claims import Capacity, Claim, Resource
from moorage.releases.release import FailureRecord
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.reports.html import BEGINNING, element, page
from moorage.reports.site_report import Site, site_page
from moorage.reports.svg import Part, bars, stacked_bar
from tests.builders import NOON, a_measurement, a_release, a_row, a_spec, a_workload

HOSTILE = "</title></pre><script>alert(1)</script><img src=x onerror='alert(1)'>\"'&\x1b\u202e"
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "pre"),
    *("table", "thead", "tbody", "tr", "th", "td", "svg", "rect"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "class", "role", "viewbox"),
    *("x", "y", "width", "height"),
}


def a_claim(release: str, gib: int, host: str = "gpu-1", **changes: Any) -> Claim:
    values = {"host": host, "resource": Resource.ACCELERATOR, "release": release}
    return Claim(**{**values, "amount": gib * GIB, **changes})


def failed(why: str = "CUDA out of memory") -> ReleaseRow:
    failure = FailureRecord(
        cause=Cause.NO_FIT, detail=why, suggestion=f"See {why}", log_tail=f"INFO\n{why}"
    )
    record = a_release("tiny.v2", failure=failure, finished_at=NOON + timedelta(seconds=20))
    cause = f"no-fit {why}"
    return a_row(record, id="tiny.v2", number=2, state=ReleaseState.ERROR, cause=cause)


def a_site(host: str = "gpu-1", why: str = "CUDA out of memory") -> Site:
    workloads = (a_workload(endpoint="http://10.0.0.1:40000"),)
    record = a_release(
        measured=(a_measurement(),), workloads=workloads, finished_at=NOON + timedelta(seconds=40)
    )
    asleep = a_row(a_release("poet.v1", spec=a_spec(name="poet")), id="poet.v1", model="poet")
    asleep = replace(asleep, state=ReleaseState.ASLEEP)
    gpus = [Capacity(resource=Resource.ACCELERATOR, index=at, amount=80 * GIB) for at in (0, 1)]
    return Site(
        at=NOON,
        histories={"poet": (asleep,), "tiny": (failed(why), a_row(record, workloads=workloads))},
        claims=(
            a_claim("tiny.v1", 60, host),
            a_claim("gone.v1", 40, host),
            a_claim("tiny.v1", 8, host, resource=Resource.RAM),
            a_claim("tiny.v1", 1, host, resource=Resource.PORT, index=40000),
        ),
        capacities={host: (*gpus, Capacity(resource=Resource.RAM, amount=512 * GIB))},
        unseen=frozenset({host}),
    )


def test_a_site_is_one_page(golden: Callable[[str, str], None]) -> None:
    golden("report.html", site_page(a_site()))


def test_an_empty_ledger_says_so() -> None:
    shown = site_page(Site(at=NOON))
    for text in ("moorage: 0 models and 0 hosts", "No model was ever deployed.", "ever claimed"):
        assert text in shown


class Parts(HTMLParser):
    """The tags, the names of attributes and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.names, self.text = set[str](), set[str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_is_hostile_is_text() -> None:
    parts = Parts(site_page(a_site(host=HOSTILE, why=HOSTILE)))
    assert parts.tags == TAGS
    assert parts.names == ATTRIBUTES
    assert parts.text.count("<script>alert(1)</script>") > 5
    assert "\x1b" not in parts.text
    assert "\u202e" not in parts.text


def test_a_page_begins_as_one_of_moorage_does_whatever_its_title() -> None:
    shown = page("<b>", "", [element("p", "a", element("b", "<"), "c")])
    assert shown.startswith(BEGINNING)
    assert "<title>&lt;b&gt;</title>" in shown
    assert "<p>a<b>&lt;</b>c</p>" in shown


@pytest.mark.parametrize(
    ("sizes", "whole", "widths"),
    [
        ((60.0, 10.0), 100.0, ["400.0", "240.0", "40.0"]),
        ((80.0, 40.0), 100.0, ["400.0", "320.0", "80.0"]),  # more is claimed than there is
        ((5.0,), 0.0, ["400.0", "0.0"]),
    ],
)
def test_parts_of_a_bar_are_shares_and_never_leave_it(
    sizes: tuple[float, ...], whole: float, widths: list[str]
) -> None:
    drawn = stacked_bar([Part(one, "", "good") for one in sizes], whole)
    assert [one.get("width") for one in drawn] == widths


def test_a_row_of_bars_shows_each_even_where_it_is_nothing() -> None:
    drawn = bars([Part(0, "", "bad"), Part(10, "", "good"), Part(5, "", "good")])
    assert [one.get("height") for one in drawn] == ["1.0", "28.0", "14.0"]
    assert bars([]).get("width") == "0"
