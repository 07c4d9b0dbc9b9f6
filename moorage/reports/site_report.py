"""A site as one HTML page, from the ledger: its models, hosts, history and memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from moorage.common.units import counted, human_bytes, human_seconds
from moorage.inventory.claims import Capacity, Claim, Resource
from moorage.operations.metrics.present import MEMORY, Place, capacity_bytes
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from moorage.reports.document import Section
from moorage.reports.html import Element, element, page, section_elements, table
from moorage.reports.load_trend import load_trend
from moorage.reports.memory_report import COMPARED_COLUMNS, comparison_rows
from moorage.reports.svg import Part, bars, stacked_bar

AT = "%Y-%m-%d %H:%M"
LOG_LINES = 25
COLOURS = 8
"""Number of classes in the style sheet, from `m0`; further models reuse them."""

UNKNOWN = "bad"
"""Class for the claims of a release that the ledger does not have."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h2 { border-bottom: 1px solid #ccd; margin-top: 2.5rem }
table { border-collapse: collapse; margin: .5rem 0 }
th, td { border-bottom: 1px solid #e4e4ee; padding: .25rem .9rem .25rem 0; text-align: left }
td { overflow-wrap: anywhere } p { white-space: pre-line }
pre { background: #f4f4f8; overflow-x: auto; padding: .7rem }
.free { fill: #e4e4ee } .good { fill: #2a9d5c } .bad { fill: #d1373f }
.m0 { fill: #3b6fd4 } .m1 { fill: #e08a1e } .m2 { fill: #2a9d8f } .m3 { fill: #a04fc4 }
.m4 { fill: #c2475e } .m5 { fill: #6b8e23 } .m6 { fill: #0f8fb3 } .m7 { fill: #8a6d4b }
@media (prefers-color-scheme: dark) {
  body { background: #16161d; color: #dde } pre { background: #23232e } .free { fill: #33333f }
  h2, th, td { border-color: #33333f }
}
"""


@dataclass(frozen=True)
class Site:
    """The contents of the ledger at one moment.

    Attributes:
        histories: Releases by model, newest first.
        capacities: By host, for all hosts that ever had claims.
        unseen: Hosts that do not answer.
    """

    at: datetime
    histories: dict[str, tuple[ReleaseRow, ...]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    capacities: dict[str, tuple[Capacity, ...]] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()


def site_page(site: Site) -> str:
    """The site's page, as HTML that loads nothing."""
    hosts = {one.host for one in site.claims} | site.capacities.keys()
    parts = (
        ("Models", _models(site)),
        ("Hosts", [_memory_map(site)]),
        ("History", _histories(site)),
        ("Memory: predicted against measured", _memory(site)),
        ("Last failures", _failures(site)),
    )
    counts = f"{counted(len(site.histories), 'model')} and {counted(len(hosts), 'host')}"
    written = element("p", f"Out of the ledger, {site.at:{AT}} UTC.")
    sections = (one for title, content in parts for one in (element("h2", title), *content))
    return page(f"moorage: {counts}", STYLE, [written, *sections])


def _models(site: Site) -> list[Element]:
    rows = [_model_row(site, current_release(own)) for own in site.histories.values()]
    header = ("model", "release", "state", "since", "address", "on", "memory claimed")
    return [table(header, rows)] if rows else [element("p", "No model was ever deployed.")]


def current_release(history: Sequence[ReleaseRow]) -> ReleaseRow:
    """The serving release of a model, else its newest release."""
    return next((row for row in history if row.state in SERVING), history[0])


def _model_row(site: Site, row: ReleaseRow) -> tuple[Element | str, ...]:
    claims = [one for one in site.claims if one.release == row.id and one.resource in MEMORY]
    hosts = ", ".join(dict.fromkeys(one.host for one in claims))
    return (
        *(row.model, row.id, row.state, f"{row.updated_at:{AT}}"),
        ", ".join(workload.url for workload in row.serving),
        hosts,
        ", ".join(_claimed(claims)),
    )


def _claimed(claims: Sequence[Claim]) -> Iterator[str]:
    for resource in sorted({one.resource for one in claims}):
        total = sum(one.amount for one in claims if one.resource == resource)
        yield f"{human_bytes(total)} of {_NAMES[resource]}"


_NAMES = {Resource.ACCELERATOR: "accelerators", Resource.RAM: "RAM"}


def _memory_map(site: Site) -> Element:
    """A bar for each accelerator and each host's RAM: the claims on it, by release."""
    releases = {row.id: row.model for own in site.histories.values() for row in own}
    models = sorted(set(releases.values()))
    colours = {one: f"m{models.index(model) % COLOURS}" for one, model in releases.items()}
    rows = list(_memory_rows(site, colours))
    header = ("host", "", "claimed", "", "by")
    return table(header, rows) if rows else element("p", "Nothing was ever claimed.")


def _memory_rows(site: Site, colours: Mapping[str, str]) -> Iterator[tuple[Element | str, ...]]:
    whole = capacity_bytes(site.capacities)
    claims = [one for one in site.claims if one.resource in MEMORY]
    for place in sorted({*whole, *map(_place, claims)}):
        host, resource, index = place
        if resource not in MEMORY:
            continue
        held = [one for one in claims if _place(one) == place]
        taken = sum(one.amount for one in held)
        total = whole.get(place, taken)
        parts = [Part(one.amount, _label(one), colours.get(one.release, UNKNOWN)) for one in held]
        figures = f"{human_bytes(taken)} of {human_bytes(total)}"
        memory = f"{resource} {index}" if resource == Resource.ACCELERATOR else "RAM"
        shown = f"{host} (does not answer)" if host in site.unseen else host
        yield shown, memory, stacked_bar(parts, total), figures, ", ".join(map(_label, held))


def _place(claim: Claim) -> Place:
    return claim.host, claim.resource, claim.index


def _label(claim: Claim) -> str:
    return f"{claim.release}: {human_bytes(claim.amount)}"


def _histories(site: Site) -> list[Element]:
    found: list[Element] = []
    for model, history in site.histories.items():
        oldest_first = [row.release.acceptance for row in reversed(history) if row.release]
        found += [element("h3", model), element("p", "What each deploy took:")]
        found.append(bars([_deploy_bar(row) for row in reversed(history)]))
        if trend := load_trend(one.figures.tpot_p50 for one in oldest_first if one):
            found.append(element("p", trend))
        rows = [
            (row.id, row.state, f"{row.created_at:{AT}}", row.revision[:18], row.cause)
            for row in history
        ]
        found.append(table(("release", "state", "created", "revision", "why"), rows))
    return found


def _deploy_bar(row: ReleaseRow) -> Part:
    record = row.release
    seconds = (record.finished_at - record.created_at).total_seconds() if record else 0.0
    is_bad = row.state == ReleaseState.ERROR
    return Part(seconds, f"{row.id} {human_seconds(seconds)}", "bad" if is_bad else "good")


def _memory(site: Site) -> list[Element]:
    records = [current_release(own).release for own in site.histories.values()]
    measured = [one for record in records if record for one in record.measured]
    section = Section(header=COMPARED_COLUMNS, rows=comparison_rows(measured))
    return section_elements(section) or [element("p", "No engine has logged its memory.")]


def _failures(site: Site) -> list[Element]:
    found = []
    for history in site.histories.values():
        failed = next((row for row in history if row.release and row.release.failure), None)
        if failed and failed.release and (failure := failed.release.failure):
            tail = "\n".join(failure.log_tail.splitlines()[-LOG_LINES:])
            text = f"{failure.cause.summary} ({failure.cause}), {failed.created_at:{AT}} UTC"
            whole = f"{text}\n{failure.detail}\nWhat to do: {failure.suggestion}"
            found += section_elements(Section(title=failed.id, text=whole, code=tail))
    return found or [element("p", "No deploy has failed.")]
