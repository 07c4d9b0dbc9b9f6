"""Which adapters a running release has been given, and whether it may be given another one."""

from __future__ import annotations

from collections.abc import Mapping, Set

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Workload
from moorage.models.assets import Pin
from moorage.releases.release import Release, ReleaseRow

Listed = Mapping[str, Set[str]]
"""The names that each workload serves, by the workload's name."""


def require_updates(row: ReleaseRow) -> Release:
    """The record of a release whose adapters may be changed while it serves.

    Raises:
        Failure: `ADAPTERS_FIXED` when its spec does not allow it.
    """
    if row.release is None or row.release.plan is None or row.release.spec.lora_updates is None:
        raise Failure(Cause.ADAPTERS_FIXED, f"{row.id} was deployed without `lora_updates`")
    return row.release


def loaded(row: ReleaseRow) -> tuple[Pin, ...]:
    """The adapters that were loaded into a release since it serves, each once."""
    pins = (pin for workload in row.serving for pin in workload.adapters)
    return tuple({pin.name: pin for pin in pins}.values())


def lacking(row: ReleaseRow, pin: Pin, listed: Listed) -> tuple[Workload, ...]:
    """The replicas into which an adapter has yet to be loaded.

    Args:
        row: The release that serves.
        pin: The adapter.
        listed: What the replicas serve.

    Raises:
        Failure: `ADAPTER_NAME_TAKEN`, `ADAPTERS_FULL` or `ADAPTERS_FIXED`.
    """
    updates = require_updates(row).spec.lora_updates
    _require_free_name(row, pin, listed)
    others = {other.name for other in loaded(row)} - {pin.name}
    if updates and len(others) >= updates.max:
        names = ", ".join(sorted(others))
        detail = f"{row.id} has room for {updates.max}, and holds {names}"
        raise Failure(Cause.ADAPTERS_FULL, detail)
    return tuple(
        workload
        for workload in row.serving
        if pin not in workload.adapters or pin.name not in listed[workload.name]
    )


def holding(row: ReleaseRow, name: str, listed: Listed) -> tuple[Workload, ...]:
    """The replicas from which an adapter has to be unloaded.

    Raises:
        Failure: `UNKNOWN_ADAPTER` when none has it, `ADAPTERS_FIXED` when it is of the spec.
    """
    if name in _own_names(require_updates(row)):
        raise Failure(
            Cause.ADAPTERS_FIXED,
            f"{name} is in the spec of {row.id}",
            suggestion="Take it out of `lora` in the spec and deploy that.",
        )
    found = tuple(
        workload
        for workload in row.serving
        if name in listed[workload.name] or _loaded_pin(workload, name)
    )
    if not found:
        names = ", ".join(pin.name for pin in loaded(row)) or "nothing"
        raise Failure(Cause.UNKNOWN_ADAPTER, f"{name}; {row.id} was given {names}")
    return found


def with_adapter(workload: Workload, pin: Pin) -> Workload:
    """The workload once an adapter is loaded into it."""
    others = without_adapter(workload, pin.name).adapters
    return workload.model_copy(update={"adapters": (*others, pin)})


def without_adapter(workload: Workload, name: str) -> Workload:
    """The workload once an adapter is unloaded from it."""
    left = tuple(pin for pin in workload.adapters if pin.name != name)
    return workload.model_copy(update={"adapters": left})


def _require_free_name(row: ReleaseRow, pin: Pin, listed: Listed) -> None:
    if pin.name in _own_names(require_updates(row)):
        raise Failure(Cause.ADAPTER_NAME_TAKEN, f"{pin.name} is in the spec of {row.id}")
    for workload in row.serving:
        pin_there = _loaded_pin(workload, pin.name)
        if pin.name not in listed[workload.name] or pin_there == pin:
            continue
        what = (
            f"{pin_there.source} at {pin_there.revision}"
            if pin_there
            else "an adapter that the ledger does not know"
        )
        detail = f"{pin.name} is {what} in {workload.name}"
        raise Failure(Cause.ADAPTER_NAME_TAKEN, detail)


def _own_names(release: Release) -> frozenset[str]:
    return frozenset({release.model, *(adapter.name for adapter in release.spec.lora)})


def _loaded_pin(workload: Workload, name: str) -> Pin | None:
    return next((pin for pin in workload.adapters if pin.name == name), None)
