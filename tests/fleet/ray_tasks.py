"""A task that Ray's workers find by its name, as they find moorage's own."""

from __future__ import annotations

import os

from moorage.common.failures import Cause, Failure
from tasks.flow_task import flow_task


@flow_task("where", "where {host}")
async def where(host: str) -> int:
    """The process that it runs in; a host can be wrong."""
    if host == "wrong":
        raise Failure(Cause.DISK_FULL, "no room", log_tail="the end")
    return os.getpid()
