"""The containers of the baseline: what GPUStack gives a replica's containers on one host.

Ours mount the model's directory alone, read-only, and publish one port (`engines/base.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

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
    accelerator_type: str,
    accelerators: Sequence[int],
    limits: tuple[int | None, int | None, float | None] = (None, None, None),
) -> Containers:
    """The container that serves.

    Args:
        model: The model's directory on the host.
        ports: All that were claimed.
        accelerator_type: Of all accelerators.
        accelerators: Their indexes on the host.
        limits: User, group, and GiB of shared memory; None = the default.
    """
    uid, gid, shm = limits
    return Containers(
        ports=tuple(sorted(ports)),
        devices={accelerator_type: tuple(sorted(accelerators))} if accelerators else {},
        mounts=(str(PurePosixPath(model).parent),),
        uid=uid,
        gid=gid,
        shm_bytes=int((DEFAULT_SHM if shm is None else shm) * GIB),
    )
