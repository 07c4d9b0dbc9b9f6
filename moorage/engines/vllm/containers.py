"""The containers of the baseline: what GPUStack gives a replica's containers on one host.

Ours mount the model's directory alone, read-only, and publish one port (`engines/base.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from moorage.failures import Cause, Failure
from moorage.units import GIB
from moorage.values import Value

SHARED_TMP = "volume:tmp-volume:/tmp"
"""Through it the engine finds the Ray beside it."""

DEFAULT_SHM = 10.0


class Containers(Value):
    """What a container is given.

    Attributes:
        ports: Ports that it listens on, ascending.
        devices: Indexes of its accelerators by type, ascending.
        mounts: Directories, under the same path inside.
        uid: User; None = the image's.
        gid: Group; None = the image's.
        shm_bytes: Shared memory.
    """

    ports: tuple[int, ...]
    devices: dict[str, tuple[int, ...]]
    mounts: tuple[str, ...]
    uid: int | None = None
    gid: int | None = None
    shm_bytes: int


def baseline_container(
    model: str,
    ports: Sequence[int],
    accelerators: Sequence[tuple[str, int]],
    limits: tuple[int | None, int | None, float | None] = (None, None, None),
) -> Containers:
    """The container that serves.

    Args:
        model: The model's directory on the host.
        ports: All that were claimed.
        accelerators: Type and index of each.
        limits: User, group, and GiB of shared memory; None = the default.

    Raises:
        Failure: `BAD_SPEC` when the accelerators are of several types.
    """
    uid, gid, shm = limits
    kinds = sorted({kind for kind, _ in accelerators})
    if len(kinds) > 1:
        raise Failure(
            Cause.BAD_SPEC,
            f"placement.accelerators: {' and '.join(kinds)} in one container",
            suggestion="Choose accelerators of one type.",
        )
    return Containers(
        ports=tuple(sorted(ports)),
        devices={kind: tuple(sorted(index for _, index in accelerators)) for kind in kinds},
        mounts=(str(PurePosixPath(model).parent),),
        uid=uid,
        gid=gid,
        shm_bytes=int((DEFAULT_SHM if shm is None else shm) * GIB),
    )
