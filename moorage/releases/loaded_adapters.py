"""Adapters that are loaded into a running release, and checks for loading another."""

from collections.abc import Mapping, Set

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.models.pin import Pin
from moorage.models.source import Companion
from moorage.placement.engine_checks import require_adapter_format
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow

Listed = Mapping[str, Set[str]]
"""Served names, by workload name."""


def require_updates(row: ReleaseRow) -> Release:
    """The record of a release that allows changes of its adapters, else raises `ADAPTERS_FIXED`."""
    if row.release is None or row.plan is None or row.release.spec.lora_updates is None:
        raise Failure(Cause.ADAPTERS_FIXED, f"{row.id} was deployed without `lora_updates`")
    return row.release


def require_loadable(release: Release, companion: Companion) -> None:
    """Refuse (`BAD_SPEC`) an adapter in a format that the release's engine cannot load."""
    if release.plan:
        require_adapter_format(ENGINES[release.plan.engine], (companion,))


def loaded(row: ReleaseRow) -> tuple[Pin, ...]:
    """The adapters that were loaded into a release after its start, each once."""
    pins = (pin for workload in row.serving for pin in workload.adapters)
    return tuple({pin.name: pin for pin in pins}.values())


def lacking(row: ReleaseRow, pin: Pin, listed: Listed) -> tuple[Workload, ...]:
    """The replicas without an adapter, into which it can be loaded.

    Raises:
        Failure: `ADAPTER_NAME_TAKEN`, `ADAPTERS_FULL` or `ADAPTERS_FIXED`.
    """
    release = require_updates(row)
    updates = release.spec.lora_updates
    if pin.name in _own_names(release):
        raise Failure(Cause.ADAPTER_NAME_TAKEN, f"{pin.name} is in the spec of {row.id}")
    for workload in row.serving:
        other = _loaded_pin(workload, pin.name)
        if pin.name in listed[workload.name] and other != pin:
            unknown = "an adapter that the ledger does not know"
            what = f"{other.source} at {other.revision}" if other else unknown
            detail = f"{pin.name} is {what} in {workload.name}"
            raise Failure(Cause.ADAPTER_NAME_TAKEN, detail)
    others = {other.name for other in loaded(row)} - {pin.name}
    if updates and len(others) >= updates.max:
        names = ", ".join(sorted(others))
        raise Failure(Cause.ADAPTERS_FULL, f"{row.id} has {updates.max} at most: {names}")
    return tuple(
        workload
        for workload in row.serving
        if pin not in workload.adapters or pin.name not in listed[workload.name]
    )


def holding(row: ReleaseRow, name: str, listed: Listed) -> tuple[Workload, ...]:
    """The replicas that have an adapter loaded.

    Raises:
        Failure: `UNKNOWN_ADAPTER` when no replica has it, `ADAPTERS_FIXED` when the spec names it.
    """
    if name in _own_names(require_updates(row)):
        raise Failure(
            Cause.ADAPTERS_FIXED,
            f"{name} is in the spec of {row.id}",
            suggestion="Remove it from `lora` in the spec, and deploy the spec.",
        )
    found = tuple(
        workload
        for workload in row.serving
        if name in listed[workload.name] or _loaded_pin(workload, name)
    )
    if not found:
        names = ", ".join(pin.name for pin in loaded(row)) or "none"
        raise Failure(Cause.UNKNOWN_ADAPTER, f"{name}; adapters loaded into {row.id}: {names}")
    return found


def with_adapter(workload: Workload, pin: Pin) -> Workload:
    """A copy of the workload with an adapter added."""
    others = without_adapter(workload, pin.name).adapters
    return workload.model_copy(update={"adapters": (*others, pin)})


def without_adapter(workload: Workload, name: str) -> Workload:
    """A copy of the workload with an adapter removed."""
    left = tuple(pin for pin in workload.adapters if pin.name != name)
    return workload.model_copy(update={"adapters": left})


def _own_names(release: Release) -> frozenset[str]:
    return frozenset({release.model, *(adapter.name for adapter in release.spec.lora)})


def _loaded_pin(workload: Workload, name: str) -> Pin | None:
    return next((pin for pin in workload.adapters if pin.name == name), None)
