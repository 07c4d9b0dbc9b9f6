"""The environment of a vLLM server, without variables that the user sets."""

from collections.abc import Iterable, Iterator

from moorage.common.values import Origin
from moorage.engines.flags import Flag, Variable, derived_flag, variable
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import claimed_accelerators
from moorage.engines.vllm.distributed import (
    PORTS_OF_SHAPE,
    link_ports,
    ranks_span_hosts,
    ray_ports,
    topology_of,
)
from moorage.engines.vllm.engine_caches import cache_root, offload_variables
from moorage.engines.vllm.launch_facts import by_baseline, is_310p, is_clustered
from moorage.placement.parallelism import Shape
from moorage.placement.placement import CPU

CANN = "cann"
ASCEND_VARIABLES = (
    variable("TASK_QUEUE_ENABLE", "1", "hands work to the device in a queue"),
    variable("CPU_AFFINITY_CONF", "1", "keeps threads near their device"),
    variable("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True", "memory splits up less"),
    variable("HCCL_CONNECT_TIMEOUT", "7200", "seconds; many devices take long to meet"),
    variable("HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", "TRUE", "posts straight over the bus"),
)
ASCEND_VARIABLES_BUT_310P = (
    variable("HCCL_EXEC_TIMEOUT", "0", "a long step is not an error"),
    variable("HCCL_OP_EXPANSION_MODE", "AIV", "the vector cores schedule the communication"),
)


def ascend_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Flags for Ascend 310P, which has neither graphs nor bfloat16."""
    if not _is_310p(request):
        return ()
    return (
        derived_flag("Ascend 310P captures no graphs", "--enforce-eager"),
        derived_flag("Ascend 310P has no bfloat16", "--dtype", "float16"),
    )


def ascend_variables(request: LaunchRequest) -> Iterator[Variable]:
    """Settings of Ascend's runtime."""
    if request.seat.accelerator_type == CANN:
        yield from ASCEND_VARIABLES
        if not _is_310p(request):
            yield from ASCEND_VARIABLES_BUT_310P


def _is_310p(request: LaunchRequest) -> bool:
    return is_310p([item.family for item in claimed_accelerators(request)])


OFFLINE = (
    variable("VLLM_NO_USAGE_STATS", "1", "a server does not report home"),
    variable("HF_HUB_OFFLINE", "1", "the model is already here"),
)
LOADING = (
    variable("OMP_NUM_THREADS", "1", "more threads only contend with the workers"),
    variable("SAFETENSORS_FAST_GPU", "1", "loads weights straight to the accelerator"),
    variable("RUNAI_STREAMER_MEMORY_LIMIT", "0", "the streamer buffers no more than one file"),
    variable("RUNAI_STREAMER_LOG_TO_STDERR", "1", "its progress is in the engine's log"),
    variable("RUNAI_STREAMER_LOG_LEVEL", "INFO", "its progress is logged"),
)


READY, READY_SECONDS = "VLLM_ENGINE_READY_TIMEOUT_S", 600
"""The variable for the seconds that vLLM's server waits for its engines, and vLLM's default.

Source: `envs.py`.
"""


def ready_variables(load_seconds: int) -> tuple[Variable, ...]:
    """The time that the server waits for its engines, if the spec allows more than vLLM."""
    if load_seconds <= READY_SECONDS:
        return ()
    reason = f"as long as `load_seconds` says; its own limit is {READY_SECONDS} s"
    return (_derived(READY, str(load_seconds), reason),)


def variables(request: LaunchRequest) -> tuple[Variable, ...]:
    """The environment of a server on accelerators."""
    variables = (
        *OFFLINE,
        *LOADING,
        *cache_variables(request),
        *offload_variables(request),
        *host_variables(request),
        *ascend_variables(request),
    )
    return without_overridden(request, variables)


def without_overridden(
    request: LaunchRequest, variables: Iterable[Variable]
) -> tuple[Variable, ...]:
    """The variables without those that the user sets; under `baseline` only defaults give way."""
    given, overwrites = request.user_variables, by_baseline(request.spec)
    return tuple(
        item
        for item in variables
        if item.name not in given or (overwrites and item.origin != Origin.DEFAULT)
    )


def cache_variables(request: LaunchRequest) -> Iterator[Variable]:
    """The variable for the folder of compiled kernels, if there is one."""
    if root := cache_root(request):
        yield variable("VLLM_CACHE_ROOT", f"{root}/vllm", "compiled kernels outlive the container")


def host_variables(request: LaunchRequest) -> Iterator[Variable]:
    """Variables for addresses, ports and interface that connect the hosts of a replica."""
    if not request.spans_hosts:
        return
    own = request.peers[request.seat.position].host.bind
    yield _derived("VLLM_HOST_IP", own, "the address that the other hosts see")
    yield from _ray(request) if is_clustered(request) else _native(request)
    yield from _interface(request, own)


RESERVED = 10
"""Ports from `VLLM_DP_MASTER_PORT` on that vLLM never takes for itself; with the first port of its
own among them, versions before August 2026 search without end (vLLM pull request 50965)."""


def _native(request: LaunchRequest) -> Iterator[Variable]:
    """Ports; without a common first port if ranks span or share hosts, as they would collide.

    A follower's first port may be one that vLLM keeps for the leader: without it vLLM takes others.
    """
    topology = topology_of(request)
    shape = topology.shape
    own_rank = shape == Shape.DP_ONLY and topology.data_local[request.seat.position] == 1
    ports = link_ports(request, PORTS_OF_SHAPE[shape])
    if shape != Shape.MP_ONLY:
        reason = "where the data-parallel ranks meet"
        yield _derived("VLLM_DP_MASTER_PORT", str(ports["joining"]), reason)
    if own_rank and not 0 <= ports["own"] - ports["joining"] < RESERVED:
        yield _derived("VLLM_PORT", str(ports["own"]), "first port of the engine's own")


def _ray(request: LaunchRequest) -> Iterator[Variable]:
    own = ray_ports(request)["own"]
    yield _derived("VLLM_PORT", str(own), "first port of the engine's own")
    if ranks_span_hosts(request) and not by_baseline(request.spec):
        yield _derived("VLLM_RAY_DP_PACK_STRATEGY", "span", "each data-parallel rank spans hosts")
    yield variable("RAY_LOG_TO_STDERR", "0", "Ray's log would drown the engine's")
    yield variable("RAY_BACKEND_LOG_LEVEL", "warning", "Ray's log would drown the engine's")


def _interface(request: LaunchRequest, own: str) -> Iterator[Variable]:
    """Variables for the network interface of collectives, unless the user names one."""
    name, reason = request.host.interface, "the interface between the hosts"
    kind, given = request.seat.accelerator_type, request.user_variables
    if not name:
        return
    if kind == CANN:
        if "HCCL_SOCKET_IFNAME" not in given:
            yield _derived("HCCL_IF_IP", own, "the address that the other hosts see")
            yield _derived("HCCL_SOCKET_IFNAME", f"={name}", reason)
            yield _derived("GLOO_SOCKET_IFNAME", name, reason)
            yield _derived("TP_SOCKET_IFNAME", name, reason)
    elif "NCCL_SOCKET_IFNAME" not in given:
        if kind != CPU:
            yield _derived("NCCL_SOCKET_IFNAME", f"={name}", reason)
        yield _derived("GLOO_SOCKET_IFNAME", name, reason)


def _derived(name: str, value: str, reason: str) -> Variable:
    return variable(name, value, reason, Origin.DERIVED)
