"""The page of a redeployment: what a person reads while it goes on, and afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from moorage.common.units import human_seconds
from moorage.common.values import Value
from moorage.operations.redeploy.intent import ModelOutcome, Redeployed, summary
from moorage.reports.document import Document, Section

TROUBLE = (ModelOutcome.FAILED,)
WAVE_COLUMNS = ("model", "outcome", "from", "to", "took", "why")
ALL_WAVES_COLUMNS = ("wave", "models", "outcome", "took")
FAILED_COLUMNS = ("model", "wave", "cause", "what happened")


class Wave(Value):
    """One wave, as far as it has come.

    Attributes:
        number: From 1.
        models: Names, in their order.
        seconds: How long it took; 0 = it has not ended.
    """

    number: int
    models: tuple[str, ...]
    seconds: float = 0.0


class Links(Value):
    """Where a person reads on about a model.

    Attributes:
        run: Address of its own run; empty = it had none.
        record: Address of the record of its release; empty = there is none.
    """

    run: str = ""
    record: str = ""


NO_LINKS = Links()
Linked = Callable[[Redeployed], Links]


def redeployment_page(
    title: str,
    waves: Sequence[Wave],
    ended: Sequence[Redeployed],
    linked: Linked = lambda _: NO_LINKS,
) -> Document:
    """What becomes of every model: what failed first, then wave by wave, then what was left.

    Args:
        title: Of the run.
        waves: All of them, also those that are not begun.
        ended: What has ended so far, in whatever order.
        linked: Where the run and the record of a model are.
    """
    by_model = {one.model: one for one in ended}
    sections = [_wave(wave, len(waves), by_model, linked) for wave in waves]
    waiting = sum(1 for wave in waves for model in wave.models if model not in by_model)
    left = f", {waiting} still to come" if waiting else ""
    parts = [
        Section(text=f"{summary(ended)}{left}."),
        _failed(ended, linked),
        _all_waves(waves, by_model),
        *sections,
        *_others(ended, linked),
    ]
    filled = (part for part in parts if part.text or part.rows)
    return Document(title=title, sections=tuple(filled))


def _failed(ended: Sequence[Redeployed], linked: Linked) -> Section:
    rows = tuple(
        (_link(one.model, linked(one).run), str(one.wave or "-"), one.cause, one.message)
        for one in ended
        if one.outcome in TROUBLE
    )
    return Section(title="What failed" if rows else "", header=FAILED_COLUMNS, rows=rows)


def _all_waves(waves: Sequence[Wave], ended: Mapping[str, Redeployed]) -> Section:
    """One line a wave; where there is only one, its own table says it all."""
    if len(waves) < 2:
        return Section()
    rows = tuple(
        (str(wave.number), str(len(wave.models)), _came_of(wave, ended), _took(wave.seconds))
        for wave in waves
    )
    return Section(title="Waves", header=ALL_WAVES_COLUMNS, rows=rows)


def _wave(
    wave: Wave,
    count: int,
    ended: Mapping[str, Redeployed],
    linked: Linked,
) -> Section:
    begun = [ended[model] for model in wave.models if model in ended]
    waiting = [model for model in wave.models if model not in ended]
    took = f" in {human_seconds(wave.seconds)}" if wave.seconds else ""
    return Section(
        title=f"Wave {wave.number} of {count}: {_came_of(wave, ended)}{took}",
        text=f"Still to come: {', '.join(waiting)}" if waiting else "",
        header=WAVE_COLUMNS,
        rows=tuple(_row(one, linked) for one in begun),
    )


def _others(ended: Sequence[Redeployed], linked: Linked) -> tuple[Section, ...]:
    """Models that were in no wave: what is as it was meant to be needs no table."""
    others = [one for one in ended if not one.wave and one.outcome not in TROUBLE]
    plain = [one.model for one in others if one.outcome == ModelOutcome.UNCHANGED and not one.why]
    rows = tuple(_row(one, linked) for one in others if one.model not in plain)
    return (
        Section(title="In no wave" if rows else "", header=WAVE_COLUMNS, rows=rows),
        Section(title=f"Unchanged: {len(plain)}" if plain else "", text=", ".join(plain)),
    )


def _row(one: Redeployed, linked: Linked) -> tuple[str, ...]:
    why = one.why or "-"
    if one.outcome == ModelOutcome.NOT_BEGUN:
        why = f"{why} ({one.message})"
    links = linked(one)
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
