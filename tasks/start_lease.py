"""The lease of accelerators on which a restarted engine loads."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.adapters.ledger.locks import LEASE_SECONDS, RENEW_SECONDS, Owner
from moorage.common.failures import Cause, Failure
from moorage.placement.placement import Placement
from moorage.releases.release_row import ReleaseRow
from tasks.context import ledger

START_LEASE_SECONDS = LEASE_SECONDS + 2 * RENEW_SECONDS
"""Lease of a start lock: longer than that of the model's lock, which the holder took earlier. A
flow that takes over the start lock finds the model unlocked and stops the killed flow's start."""


@contextmanager
def lease_accelerators(row: ReleaseRow) -> Iterator[None]:
    """Lease the release's accelerators until it answers; an error in the block drops the lease.

    No process owns the lease, so it outlives this process. Raises `ACCELERATOR_STARTING` when
    another engine starts on one of them.
    """
    release = row.release
    names = lock_names(row.placement)
    if not names or release is None:
        yield
        return
    deadlines = release.spec.readiness.deadlines
    seconds = float(deadlines.load_seconds + deadlines.warm_up_seconds)
    owner = Owner(machine="", pid=0, started_at=0, note=row.id)
    locks, token = ledger().locks, lease_of(row.id)
    if held := locks.take_all(names, token, owner, seconds):
        name, other = next(iter(held.items()))
        raise Failure(Cause.ACCELERATOR_STARTING, f"{other.note or other.pid} starts on {name}")
    try:
        yield
    except BaseException:
        locks.drop(token)
        raise


def lease_of(release: str) -> str:
    """The lock token of a restart, with which it leases the accelerators of its release."""
    return hashlib.sha256(f"restart {release}".encode()).hexdigest()


def lock_names(*placements: Placement | None) -> tuple[str, ...]:
    """Names of the start locks of each accelerator of the placements."""
    names = {
        f"start:{seat.host}:{seat.accelerator_type}:{one}"
        for placement in placements
        if placement
        for seat in placement.seats
        # Also by UUID: a driver may have given the indexes anew since.
        for one in (*seat.accelerators, *seat.devices)
    }
    return tuple(sorted(names))
