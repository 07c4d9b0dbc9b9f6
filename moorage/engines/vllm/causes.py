"""Texts of vLLM's log that give away why a start failed."""

from __future__ import annotations

from moorage.failures import Cause
from moorage.readiness.diagnosis import LogCause

LOG_CAUSES = (
    LogCause(
        pattern=r"estimated maximum model length is (?P<length>\d+)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Set `context: {length}` or lower, or give the model more memory.",
    ),
    LogCause(
        pattern=r"No available memory for the cache blocks|Cannot auto-fit max_model_len",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="The weights leave no room for the cache: use more or larger accelerators.",
    ),
    LogCause(
        pattern=r"Free memory on device .* is less than desired GPU memory utilization",
        cause=Cause.ENGINE_ACCELERATOR_BUSY,
    ),
    LogCause(pattern=r"Error in memory profiling", cause=Cause.ENGINE_ACCELERATOR_BUSY),
    LogCause(
        pattern=r"Model architectures \[(?P<names>[^\]]*)\] (are not supported|failed)",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="vLLM does not know {names}: use a newer `engine.version`, or transformers.",
    ),
    LogCause(
        pattern=r"Insufficient space in /dev/shm.*?(?P<size>\d+ MiB) required",
        cause=Cause.ENGINE_SHM_TOO_SMALL,
        suggestion="Raise `engine.shm` above {size}.",
    ),
    LogCause(
        pattern=r"No working C\+\+ compiler found",
        cause=Cause.PROGRAM_MISSING,
        suggestion="The image cannot compile: add `--enforce-eager` to `engine.args`.",
    ),
    LogCause(
        pattern=r"is less than desired CPU memory utilization",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
    ),
    LogCause(pattern=r"Failed to infer device type", cause=Cause.ENGINE_NO_DEVICE),
    LogCause(
        pattern=r"World size \(\d+\) is larger than the number of available GPUs",
        cause=Cause.ENGINE_NO_DEVICE,
    ),
)
