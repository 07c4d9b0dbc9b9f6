"""What was seen of a workload."""

from __future__ import annotations

from moorage.common.values import Value


class Observation(Value):
    """The state of a container or process.

    Attributes:
        running: Whether it runs.
        exit_code: Exit status once it has ended; None = unknown or still running.
        out_of_memory: Whether the kernel killed it for memory.
        restarts: How often it ended and was started again by its runtime.
        ready: Whether its runtime says that it serves; None = the runtime cannot tell.
        detail: The state in words.
    """

    running: bool
    exit_code: int | None = None
    out_of_memory: bool = False
    restarts: int = 0
    ready: bool | None = None
    detail: str
