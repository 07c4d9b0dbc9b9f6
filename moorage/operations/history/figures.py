"""What two releases measured, beside each other."""

from __future__ import annotations

from moorage.common.units import human_bytes, human_seconds
from moorage.operations.history.change import Change
from moorage.readiness.measured import summed_up
from moorage.readiness.protocol import Phase
from moorage.readiness.smoke_test import speed_of
from moorage.releases.release import Release

FIGURES = {
    "weights_bytes": "weights",
    "consumed_bytes": "taken beside the cache",
    "activation_bytes": "activation",
    "graph_bytes": "CUDA graphs",
    "kv_cache_bytes": "KV cache",
    "kv_tokens": "tokens in the KV cache",
    "concurrency": "full requests at once",
    "process_bytes": "RAM of the worker",
}
"""What engines log about memory, and what it is called."""

LOADED, FIRST_TOKEN, WHOLE = "until it was healthy", "first answer", "whole deployment"
DOWNTIME, SPEED = "nobody served for", "tokens per second"
SLOWEST = "slowest golden prompt"
TIMES = (LOADED, FIRST_TOKEN, SLOWEST, DOWNTIME, WHOLE)


def figure_changes(before: Release, after: Release) -> tuple[Change, ...]:
    """Every figure that one of them has, equal or not, with how many times as much it is now."""
    was, now = _figures(before), _figures(after)
    return tuple(
        Change(
            what=name,
            before=_text(name, was.get(name)),
            after=_text(name, now.get(name)),
            ratio=_ratio(was.get(name), now.get(name)),
        )
        for name in dict.fromkeys((*was, *now))
    )


def _figures(release: Release) -> dict[str, float]:
    """Bytes, tokens and seconds by name; of several replicas the one that decides, or the last."""
    measured = summed_up(one.measured for one in release.measured)
    logged = measured.model_dump(exclude_none=True) if measured else {}
    found = {FIGURES[name]: float(value) for name, value in logged.items() if name in FIGURES}
    healthy = [
        probe.seconds
        for one in release.readiness
        for probe in one.probes
        if probe.phase == Phase.HEALTHY
    ]
    tokens = [one.first_token_seconds for one in release.readiness if one.first_token_seconds]
    found |= {LOADED: max(healthy)} if healthy else {}
    found |= {FIRST_TOKEN: max(tokens)} if tokens else {}
    if speed := speed_of(release.gate):
        found[SPEED] = speed
    if release.gate:
        found[SLOWEST] = max(gate.slowest for gate in release.gate)
    if release.downtime_seconds is not None:
        found[DOWNTIME] = release.downtime_seconds
    found[WHOLE] = (release.finished_at - release.created_at).total_seconds()
    return found


def _text(name: str, value: float | None) -> str | None:
    if value is None:
        return None
    if name in TIMES:
        return human_seconds(value)
    if name in (FIGURES["kv_tokens"], FIGURES["concurrency"], SPEED):
        return f"{value:g}" if value % 1 else f"{value:.0f}"
    return human_bytes(int(value))


def _ratio(before: float | None, after: float | None) -> float | None:
    return round(after / before, 3) if before and after is not None else None
