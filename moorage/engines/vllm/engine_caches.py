"""Caches of vLLM on its host: folders for the next start, and the extended KV cache in RAM.

The folders hold compiled code and the memory plan. The extended cache is LMCache, which keeps
blocks that were evicted from the accelerator.
"""

import hashlib
import json
from collections.abc import Iterator

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.common.versions import at_least
from moorage.engines.flags import Flag, Variable, spec_flag, variable
from moorage.engines.launch import Mount
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import claimed_accelerators
from moorage.engines.vllm.launch_facts import version_of
from moorage.memory.option_names import LMCACHE, LMCACHE_TYPES
from moorage.placement.parallelism import Parallelism, stated_parallelism
from moorage.placement.placement import CPU
from moorage.spec import EngineName, ExtendedCacheSpec, ModelSpec
from moorage.spec.arguments import EngineArguments

INSIDE = "/cache"
"""Path of the cache folder in a container."""

ROOT = "VLLM_CACHE_ROOT"
PLAN_SINCE = "0.27.1"
"""First version whose startup plan is known to work (vLLM PR 47388, vllm-ascend 15654)."""

PLAN_TYPES = frozenset({"cuda", "rocm"})
"""Accelerator types whose worker reads the plan (vLLM 0.32, `v1/worker/gpu_worker.py`)."""

MEMORY_OPTIONS = ("--gpu-memory-utilization", "--kv-cache-memory-bytes")


def cache_folder(request: LaunchRequest) -> str:
    """The cache folder on the host; empty = no cache.

    It belongs to one model, because a model with its own code must not write code that another
    model runs. It also belongs to one image (or installed program) and one kind of accelerator,
    because code compiled for one may not run on another.
    """
    engine, seat = request.spec.engine, request.seat
    if not request.caches or not engine.keep_cache or ROOT in request.user_variables:
        return ""
    program = request.image.pinned if request.image else _program(request)
    # Files of one user may be unreadable for another.
    users = [] if engine.container.user is None else [engine.container.user]
    products = sorted({item.name for item in claimed_accelerators(request)})
    key = _digits([program, *users, *products])
    words = ("vllm", version_of(request), seat.accelerator_type, key)
    return f"{request.caches}/{request.spec.name}/{'-'.join(word for word in words if word)}"


def cache_root(request: LaunchRequest) -> str:
    """The cache folder's path for the engine; empty = no cache."""
    folder = cache_folder(request)
    return INSIDE if folder and request.in_container else folder


def cache_mounts(request: LaunchRequest, command: tuple[str, ...]) -> Iterator[Mount]:
    """Writable mounts of the cache folder, and in it of the plans, shared only by equal commands.

    vLLM's key of a plan omits the share of memory (`CacheConfig.compute_hash`), so a plan made with
    a larger share would exceed the claim.
    """
    folder = cache_folder(request)
    if not folder or not request.in_container:
        return
    yield Mount(source=folder, target=INSIDE, read_only=False, kept=True)
    if _plans(request):
        options = [*command, *request.spec.engine.arguments.words]
        same = [options, request.model.path, request.profile.weight_bytes, request.spec.engine.env]
        yield Mount(
            source=f"{folder}-plan-{_digits(same)}",
            target=f"{INSIDE}/vllm/startup_plan",
            read_only=False,
            kept=True,
        )


def kept_cache_variables(request: LaunchRequest) -> Iterator[Variable]:
    """Variables for further paths in the cache folder, and the switch of the memory plan."""
    root = cache_root(request)
    if not root:
        return
    if request.seat.accelerator_type != CPU:
        reason = "kernels that Triton compiles outlive the container"
        yield variable("TRITON_CACHE_DIR", f"{root}/triton", reason)
    if request.in_container and request.spec.engine.container.user is not None:
        reason = "a home that the user of the container may write"
        yield variable("HOME", root, reason, Origin.DERIVED)
    if _plans(request):
        reason = "the same start again need not measure the memory"
        yield variable("VLLM_ENABLE_STARTUP_PLAN", "1", reason)


def _plans(request: LaunchRequest) -> bool:
    """Whether plans are kept: only if the share of memory is the claimed share."""
    return (
        request.in_container
        and request.seat.accelerator_type in PLAN_TYPES
        and request.spec.engine.command is None
        and at_least(version_of(request), PLAN_SINCE)
        and not request.spec.engine.arguments.states(*MEMORY_OPTIONS)
    )


def _program(request: LaunchRequest) -> str:
    installed = request.host.program(EngineName.VLLM)
    return f"{installed.path} {installed.version}" if installed else ""


def _digits(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


SIZE = "--kv-offloading-size"
MOST_GIB = 1 << 20
"""Largest size: more RAM than any host has."""

SEED = variable("PYTHONHASHSEED", "0", "all processes have to know a block by the same hash")
CONNECTOR = f'{{"kv_connector":"{LMCACHE}","kv_role":"kv_both"}}'


def offload_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The connector of the extended cache, if there is one."""
    if not _extended_cache(request.spec, request.seat.accelerator_type):
        return ()
    return (spec_flag("extended_kv_cache", "--kv-transfer-config", CONNECTOR),)


def offload_variables(request: LaunchRequest) -> Iterator[Variable]:
    """Variables of LMCache's sizes and hash seed, if there is an extended cache.

    Each process takes the whole size that LMCache is given (LMCache issue 2901), so each rank gets
    its part of the host's size.
    """
    seat = request.seat
    cache = _extended_cache(request.spec, seat.accelerator_type)
    if cache is None:
        return
    claimed, ranks = sum(seat.accelerator_bytes), len(seat.accelerators) or 1
    if cache.chunk:
        reason = "tokens of a chunk"
        yield variable("LMCACHE_CHUNK_SIZE", str(cache.chunk), reason, Origin.USER)
    part = f", for each of {ranks} ranks" if ranks > 1 else ""
    if cache.ram:
        size, reason = _gib(cache.ram // ranks), f"GiB of RAM, as stated{part}"
    else:
        size = str(round(_ram_on_host(cache, claimed) / ranks / GIB, 2))
        reason = f"GiB of RAM, {cache.ratio:g} x {claimed} claimed bytes{part}"
    yield variable("LMCACHE_MAX_LOCAL_CPU_SIZE", size, reason, Origin.USER)
    yield SEED


def offload_warnings(request: LaunchRequest) -> Iterator[str]:
    """A warning if the spec wants an extended cache that cannot run."""
    kind = request.seat.accelerator_type
    if request.spec.extended_kv_cache and kind not in LMCACHE_TYPES:
        yield f"extended_kv_cache: LMCache does not run on {kind}; it is left out"


def ram_of_cache(spec: ModelSpec, accelerator_type: str, claimed: int) -> int:
    """Bytes of RAM that extended caches take on a host: the field's, and vLLM's own."""
    cache = _extended_cache(spec, accelerator_type)
    return (_ram_on_host(cache, claimed) if cache else 0) + _ram_of_option(spec.engine.arguments)


def _ram_of_option(arguments: EngineArguments) -> int:
    """Bytes of vLLM's own cache in RAM: all ranks of a copy of the model share its size.

    Raises:
        Failure: `BAD_SPEC` when the size is no number of GiB.
    """
    stated = arguments.value(SIZE)
    if stated in (None, "None"):
        return 0
    try:
        size = float(stated or "")
    except ValueError:
        size = -1
    if not 0 <= size <= MOST_GIB:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {SIZE} {(stated or '')[:60]} is no number of GiB",
            suggestion=f"Write `{SIZE} 8`, or use `extended_kv_cache`.",
        )
    sizes = stated_parallelism(arguments) or Parallelism()
    return int(size * GIB) * (sizes.data_local or sizes.data)


def _extended_cache(spec: ModelSpec, accelerator_type: str) -> ExtendedCacheSpec | None:
    """The extended cache that the spec wants; None = none wanted, or LMCache cannot run."""
    return spec.extended_kv_cache if accelerator_type in LMCACHE_TYPES else None


def _ram_on_host(cache: ExtendedCacheSpec, claimed: int) -> int:
    return cache.ram or int(claimed * cache.ratio)


def _gib(size: int) -> str:
    whole, rest = divmod(size, GIB)
    return str(round(size / GIB, 2)) if rest else str(whole)
