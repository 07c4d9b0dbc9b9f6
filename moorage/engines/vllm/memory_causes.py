"""Texts of vLLM about memory: what does not fit, and what would."""

from __future__ import annotations

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import LogCause

MEMORY_CAUSES = (
    LogCause(
        pattern=r"max seq len \((?P<asked>\d+)\).*estimated maximum model length is"
        r" (?P<length>\d+)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Set `context: {length}` or lower, or give the model more memory.",
    ),
    LogCause(
        pattern=r"estimated maximum model length is (?P<length>\d+)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Set `context: {length}` or lower, or give the model more memory.",
    ),
    LogCause(
        pattern=r"No available memory for the cache blocks|Cannot auto-fit max_model_len"
        r"|To serve at least one request with the model's max seq len \(\d+\)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="The weights leave no room for the cache: use more or larger accelerators, or"
        " more memory on CPU.",
    ),
    LogCause(
        pattern=r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived"
        r" max_model_len \(\w+=(?P<length>\d+)",
        cause=Cause.ENGINE_CONTEXT_TOO_LONG,
        suggestion="Set `context: {length}` or lower, or extend the model's rope scaling.",
    ),
    LogCause(
        pattern=r"Free memory on device .*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is"
        r" less than [^(]*\((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        cause=Cause.ENGINE_ACCELERATOR_BUSY,
        suggestion="{free} of {total} GiB were free, {wanted} were asked for: look for leftover"
        " processes there, or place the model elsewhere.",
    ),
    LogCause(
        pattern=r"Error in memory profiling",
        cause=Cause.ENGINE_ACCELERATOR_BUSY,
        suggestion="Something else took or freed its memory while vLLM measured it: look for"
        " leftover processes, then deploy again.",
    ),
    LogCause(
        pattern=r"Available memory on node \d+ \((?P<free>[\d.]+)/[\d.]+ GiB\) on startup is less"
        r" than desired CPU memory utilization",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
        suggestion="{free} GiB of RAM were free: free some, or set VLLM_CPU_KVCACHE_SPACE in"
        " `engine.env` to the GiB that the cache may take.",
    ),
    LogCause(
        pattern=r"Available memory on node \d+ \((?P<free>[\d.]+)/[\d.]+ GiB\) on kv cache"
        r" allocation is less than requested memory for kv",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
        suggestion="{free} GiB of RAM were free: lower `context` or `concurrency`, or free some.",
    ),
    LogCause(
        pattern=r"Insufficient space in /dev/shm.*?(?P<size>\d+ MiB) required",
        cause=Cause.ENGINE_SHM_TOO_SMALL,
        suggestion="Raise `engine.shm` above {size}.",
    ),
    LogCause(
        pattern=r"/dev/shm\S*: No space left on device|unable to (open|allocate) shared memory"
        r"|write to file </torch_\S+>: No space left",
        cause=Cause.ENGINE_SHM_TOO_SMALL,
    ),
)
