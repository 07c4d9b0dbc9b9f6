"""What a host must pass before its resources are looked at."""

from __future__ import annotations

from collections.abc import Callable

from moorage.placement.placement import Refusal
from moorage.placement.snapshot import HostSnapshot
from moorage.spec import ModelSpec


class Refused(Exception):
    """A host cannot take the model."""

    def __init__(self, refusal: Refusal, detail: str, needed: int = 0, available: int = 0) -> None:
        super().__init__(refusal, detail)
        self.refusal, self.detail = refusal, detail
        self.needed, self.available = needed, available


def _is_reachable(_spec: ModelSpec, host: HostSnapshot) -> None:
    if host.unreachable:
        raise Refused(Refusal.UNREACHABLE, host.unreachable)


def _has_labels(spec: ModelSpec, host: HostSnapshot) -> None:
    wanted = spec.placement.host_labels
    differ = [f"{k}={v}" for k, v in wanted.items() if host.labels.get(k) != v]
    if differ:
        raise Refused(Refusal.LABELS, f"lacks {', '.join(differ)}")


def _is_selected(spec: ModelSpec, host: HostSnapshot) -> None:
    chosen = spec.placement.accelerators
    if not isinstance(chosen, tuple):
        return
    hosts = {identity.split(":")[0] for identity in chosen}
    if len(hosts) > 1:
        raise Refused(Refusal.ONE_HOST_ONLY, f"accelerators of {len(hosts)} hosts are selected")
    if host.name not in hosts:
        raise Refused(Refusal.NOT_SELECTED, f"the spec selects {', '.join(sorted(hosts))}")
    if len({identity.split(":")[1] for identity in chosen}) > 1:
        raise Refused(Refusal.MIXED_TYPES, "the selected accelerators are of several types")


FILTERS: tuple[Callable[[ModelSpec, HostSnapshot], None], ...] = (
    _is_reachable,
    _has_labels,
    _is_selected,
)
"""In this order; the first that refuses a host names the reason."""
