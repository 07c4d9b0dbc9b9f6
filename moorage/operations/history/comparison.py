"""Comparison of two releases: spec, image, flags, placement and measured figures."""

from moorage.common.units import human_bytes, human_seconds, short_number, short_seconds
from moorage.common.values import Value
from moorage.operations.history.changes import (
    Change,
    changes,
    flag_changes,
    spec_changes,
    variable_changes,
)
from moorage.placement.placement import Placement, Seat
from moorage.readiness.engine_facts import combine_measured
from moorage.readiness.protocol import Phase
from moorage.readiness.smoke_test import speed_of
from moorage.releases.release import Release

FIGURES = {
    "weights_bytes": "weights",
    "consumed_bytes": "taken by all but the cache",
    "activation_bytes": "activation",
    "graph_bytes": "CUDA graphs",
    "kv_cache_bytes": "KV cache",
    "kv_tokens": "tokens in the KV cache",
    "concurrency": "full requests at once",
    "process_bytes": "RAM of the worker",
}
"""Names of the memory figures that engines log."""

LOADED, FIRST_TOKEN, WHOLE = "until it was healthy", "first answer", "whole deployment"
DOWNTIME, SPEED = "no release served for", "tokens per second"
SLOWEST = "slowest golden prompt"
LOAD_TIMES = {
    "ttft_p50": "TTFT p50 under load",
    "ttft_p95": "TTFT p95 under load",
    "tpot_p50": "TPOT p50 under load",
    "tpot_p95": "TPOT p95 under load",
}
LOAD_RATES = {
    "tokens_per_second": "tokens per second under load",
    "goodput": "goodput under load, requests/s",
}
UNDER_LOAD = {**LOAD_TIMES, **LOAD_RATES}
"""Names of the figures that the acceptance load measures."""


def figure_changes(before: Release, after: Release) -> tuple[Change, ...]:
    """All figures of either release, equal or not, with the ratio if both have it."""
    was, now = _figures(before), _figures(after)
    return tuple(
        Change(
            what=name,
            before=_figure_text(name, was.get(name)),
            after=_figure_text(name, now.get(name)),
            ratio=round(now[name] / was[name], 3) if was.get(name) and name in now else None,
        )
        for name in dict.fromkeys((*was, *now))
    )


def _figures(release: Release) -> dict[str, float]:
    """Bytes, tokens and seconds by name; of several replicas, the slowest or largest figure."""
    measured = combine_measured(one.measured for one in release.measured)
    logged = measured.model_dump(exclude_none=True) if measured else {}
    accepted = release.acceptance
    load = accepted.figures.model_dump(include={*UNDER_LOAD}) if accepted else {}
    probes = (probe for one in release.readiness for probe in one.probes)
    healthy = (probe.seconds for probe in probes if probe.phase == Phase.HEALTHY)
    found: dict[str, float | None] = {
        **{FIGURES[name]: float(value) for name, value in logged.items() if name in FIGURES},
        LOADED: max(healthy, default=None),
        FIRST_TOKEN: max((one.first_token_seconds for one in release.readiness), default=0) or None,
        SPEED: speed_of(release.gate) or None,
        SLOWEST: max((gate.slowest for gate in release.gate), default=None),
        **{UNDER_LOAD[name]: value for name, value in load.items()},
        DOWNTIME: release.downtime_seconds,
        WHOLE: (release.finished_at - release.created_at).total_seconds(),
    }
    return {name: value for name, value in found.items() if value is not None}


def _figure_text(name: str, value: float | None) -> str | None:
    if value is None:
        return None
    if name in (LOADED, FIRST_TOKEN, SLOWEST, DOWNTIME, WHOLE):
        return human_seconds(value)
    if name in LOAD_TIMES.values():
        return short_seconds(value)
    if name in (FIGURES["kv_tokens"], FIGURES["concurrency"], SPEED, *LOAD_RATES.values()):
        return short_number(value)
    return human_bytes(int(value))


class Comparison(Value):
    """The differences between two releases, which `before` and `after` identify.

    `environment` hides the values of variables; `measured` includes equal figures.
    """

    before: str
    after: str
    spec: tuple[Change, ...] = ()
    revision: tuple[Change, ...] = ()
    image: tuple[Change, ...] = ()
    flags: tuple[Change, ...] = ()
    environment: tuple[Change, ...] = ()
    placement: tuple[Change, ...] = ()
    measured: tuple[Change, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both run the same in the same place; ignores figures, which always differ."""
        parts = (self.spec, self.revision, self.image, self.flags, self.environment)
        return not any((*parts, self.placement))


def compare(before: Release, after: Release) -> Comparison:
    """Compare two releases, of the same model or of different ones."""
    return Comparison(
        before=before.id,
        after=after.id,
        spec=spec_changes(before.spec, after.spec),
        revision=changes(_revisions(before), _revisions(after)),
        image=changes(_image(before), _image(after)),
        flags=flag_changes(before.plan, after.plan),
        environment=variable_changes(before.plan, after.plan),
        placement=changes(_placed(before.placement), _placed(after.placement)),
        measured=figure_changes(before, after),
    )


def _revisions(release: Release) -> dict[str, str]:
    pins = {
        f"{pin.role} {pin.name}" if pin.role != pin.name else pin.name: (
            f"{pin.source} at {pin.revision}"
        )
        for pin in release.companions
    }
    files = {"files": release.pattern} if release.files and release.pattern else {}
    return {"model": f"{release.spec.source} at {release.revision}", **files, **pins}


def _image(release: Release) -> dict[str, str]:
    facts = {"engine version": release.plan.engine_version if release.plan else ""}
    if image := release.image:
        facts |= {"reference": image.reference, "digest": image.digest}
        # An image built on the host has no digest, only a local id.
        facts |= {} if image.digest else {"local id": image.identity}
    return {name: text for name, text in facts.items() if text}


def _placed(placement: Placement | None) -> dict[str, str]:
    if placement is None:
        return {}
    facts = {"engine": str(placement.engine), "policy": str(placement.policy)}
    for seat in placement.seats:
        name = f"r{seat.replica} {seat.role}"
        position = sum(key.startswith(name) and key.endswith(": host") for key in facts)
        label = f"{name} {position}" if position else name
        facts |= {f"{label}: {what}": text for what, text in _seat(seat).items()}
    return facts


def _seat(seat: Seat) -> dict[str, str]:
    indexes = ", ".join(f"{seat.accelerator_type}:{index}" for index in seat.accelerators)
    facts = {
        "host": seat.host,
        "runtime": str(seat.runtime),
        "accelerators": indexes or "none",
        "accelerator memory": ", ".join(map(human_bytes, seat.accelerator_bytes)),
        "RAM": human_bytes(seat.ram_bytes) if seat.ram_bytes else "",
        "cores": str(seat.cores or ""),
        "port": str(seat.port),
        "tensor parallel": str(seat.tensor),
        "pipeline parallel": str(seat.pipeline),
        "context": str(seat.tokens or ""),
        "memory share": f"{seat.utilization:g}" if seat.utilization else "",
    }
    return {what: text for what, text in facts.items() if text}
