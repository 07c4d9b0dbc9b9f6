"""Results of operations as pages and tables: compare, apply, reconcile, redeploy."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from moorage.common.units import counted, human_seconds
from moorage.common.values import Value
from moorage.operations.history.changes import Change
from moorage.operations.history.comparison import Comparison
from moorage.operations.history.desired import Applied
from moorage.operations.reconcile.actions import QUIET, ActionKind, ActionOutcome
from moorage.operations.reconcile.cluster_state import ClusterState
from moorage.operations.redeploy.intent import ModelOutcome, Redeployed, summary
from moorage.reports.document import Document, Section

COMPARED_PARTS = {
    "spec": "Spec",
    "revision": "Revisions",
    "image": "Image",
    "flags": "Flags",
    "environment": "Environment",
    "placement": "Placement",
    "measured": "Measured",
}
"""Parts of a comparison, and their titles."""

RECONCILE_COLUMNS = ("what", "about", "why", "outcome")
WAVE_COLUMNS = ("model", "outcome", "from", "to", "took", "why")

AT = "%Y-%m-%d %H:%M:%S"

Row = tuple[str, ...]


def comparison_document(comparison: Comparison) -> Document:
    """The differences part by part; parts without a difference are left out."""
    same = "Both run the same in the same place." if comparison.is_same else ""
    header = ("", comparison.before, comparison.after, "")
    parts = (
        Section(title=title, header=header, rows=tuple(map(_change_row, getattr(comparison, name))))
        for name, title in COMPARED_PARTS.items()
    )
    title = f"{comparison.before} and {comparison.after}"
    return Document(title=title, sections=(Section(text=same), *parts))


def applied_document(ended: Sequence[Applied]) -> Document:
    """The outcome of applying each spec, failures first."""
    rows = [
        (one.model, one.action, one.outcome, one.release or "-", one.message)
        for one in sorted(ended, key=lambda one: one.outcome != "failed")
    ]
    header = ("model", "action", "outcome", "release", "message")
    return Document(title="Applied", sections=(Section(header=header, rows=tuple(rows)),))


def reconcile_rows(outcomes: Iterable[ActionOutcome]) -> tuple[Row, ...]:
    """One row per action."""
    return tuple(
        (
            one.action.kind,
            one.action.about,
            one.action.reason,
            one.summary or ("done" if one.done else "not done"),
        )
        for one in outcomes
    )


def changing(outcomes: Iterable[ActionOutcome]) -> tuple[ActionOutcome, ...]:
    """Outcomes of actions that change something, and of probes that could not be sent."""
    return tuple(
        one
        for one in outcomes
        if one.action.kind not in QUIET or (one.action.kind == ActionKind.PROBE and not one.done)
    )


def reconcile_summary(cluster: ClusterState, outcomes: Iterable[ActionOutcome]) -> str:
    """One line about the observed hosts and releases, and the actions."""
    acted = changing(outcomes)
    hosts = len({one.place.host for one in cluster.observations})
    checked = f"{counted(hosts, 'host')} and {counted(len(cluster.releases), 'release')} checked"
    if not acted:
        return f"{checked}: nothing to do"
    done = [f"{one.action.kind} {one.action.about}" for one in acted if one.done]
    left = len(acted) - len(done)
    rest = f"; {left} left" if left else ""
    return f"{checked}: {', '.join(done) or 'nothing done'}{rest}"


def hosts_table(cluster: ClusterState) -> list[dict[str, str]]:
    """A row for each observed place."""
    return [
        {
            "host": one.place.host,
            "runtime": one.place.runtime,
            "seen": f"no, since {one.unreachable_since:{AT}}" if one.unreachable_since else "yes",
            "workloads": str(sum(not workload.helper for workload in one.workloads)),
            "detail": one.detail,
        }
        for one in cluster.observations
    ]


class Wave(Value):
    """One wave and its progress. Numbers begin at 1; 0 seconds = the wave has not ended."""

    number: int
    models: tuple[str, ...]
    seconds: float = 0.0


class Links(Value):
    """Addresses of a model's own run and of the record of its release; empty = none."""

    run: str = ""
    record: str = ""


def redeployment_page(
    title: str,
    waves: Sequence[Wave],
    ended: Sequence[Redeployed],
    linked: Callable[[Redeployed], Links] = lambda _: Links(),
) -> Document:
    """The outcome of every model: first failures, then wave by wave, then models in no wave.

    All waves are shown, including those that have not begun.
    """
    by_model = {one.model: one for one in ended}
    rows = {one.model: _row(one, linked(one)) for one in ended}
    waiting = sum(1 for wave in waves for model in wave.models if model not in by_model)
    left = f", {waiting} still to come" if waiting else ""
    sections = (
        Section(text=f"{summary(ended)}{left}."),
        _failed(ended, rows),
        _all_waves(waves, by_model),
        *(_wave(wave, len(waves), by_model, rows) for wave in waves),
        *_others(ended, rows),
    )
    return Document(title=title, sections=sections)


def _change_row(change: Change) -> tuple[str, ...]:
    origins = [str(one) for one in (change.origin_before, change.origin_after) if one]
    parts = [" -> ".join(dict.fromkeys(origins))]
    parts += [f"only {', '.join(change.where)}"] if change.where else []
    parts += [f"{change.ratio:g} times"] if change.ratio is not None else []
    note = "; ".join(part for part in parts if part)
    return change.what, _side(change.before), _side(change.after), note


def _side(text: str | None) -> str:
    return "-" if text is None else text or "(on)"


def _failed(ended: Sequence[Redeployed], rows: Mapping[str, Row]) -> Section:
    failed = tuple(
        (rows[one.model][0], str(one.wave or "-"), one.cause, one.message)
        for one in ended
        if one.outcome == ModelOutcome.FAILED
    )
    header = ("model", "wave", "cause", "what happened")
    return Section(title="What failed", header=header, rows=failed)


def _all_waves(waves: Sequence[Wave], ended: Mapping[str, Redeployed]) -> Section:
    """One line per wave; empty for a single wave, whose own table has the same facts."""
    if len(waves) < 2:
        return Section()
    rows = tuple(
        (str(wave.number), str(len(wave.models)), _came_of(wave, ended), _took(wave.seconds))
        for wave in waves
    )
    return Section(title="Waves", header=("wave", "models", "outcome", "took"), rows=rows)


def _wave(
    wave: Wave, count: int, ended: Mapping[str, Redeployed], rows: Mapping[str, Row]
) -> Section:
    waiting = [model for model in wave.models if model not in ended]
    took = f" in {human_seconds(wave.seconds)}" if wave.seconds else ""
    return Section(
        title=f"Wave {wave.number} of {count}: {_came_of(wave, ended)}{took}",
        text=f"Still to come: {', '.join(waiting)}" if waiting else "",
        header=WAVE_COLUMNS,
        rows=tuple(rows[model] for model in wave.models if model in ended),
    )


def _others(ended: Sequence[Redeployed], rows: Mapping[str, Row]) -> tuple[Section, ...]:
    """Models that were in no wave; those that needed no change are listed without a table."""
    others = [one for one in ended if not one.wave and one.outcome != ModelOutcome.FAILED]
    plain = [one.model for one in others if one.outcome == ModelOutcome.UNCHANGED and not one.why]
    shown = tuple(rows[one.model] for one in others if one.model not in plain)
    return (
        Section(title="In no wave", header=WAVE_COLUMNS, rows=shown),
        Section(title=f"Unchanged: {len(plain)}", text=", ".join(plain)),
    )


def _row(one: Redeployed, links: Links) -> Row:
    why = one.why or "-"
    if one.outcome == ModelOutcome.NOT_BEGUN:
        why = f"{why} ({one.message})"
    after = _link(one.after or "-", links.record)
    cells = (one.outcome, one.before or "-", after, _took(one.seconds), why)
    return (_link(one.model, links.run), *cells)


def _link(text: str, address: str) -> str:
    return f"[{text}]({address})" if address else text


def _came_of(wave: Wave, ended: Mapping[str, Redeployed]) -> str:
    begun = [ended[model] for model in wave.models if model in ended]
    if not begun:
        return "still to come"
    left = len(wave.models) - len(begun)
    return f"{summary(begun)}, {left} still to come" if left else summary(begun)


def _took(seconds: float) -> str:
    return human_seconds(seconds) if seconds else "-"
