"""The environment of a vLLM server; variables that the user sets are left out."""

from collections.abc import Iterable, Iterator

from moorage.common.values import Origin
from moorage.engines.flags import Flag, Variable, derived_flag, variable
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.distributed import (
    PortUse,
    data_ranks,
    joins_natively,
    ports_of,
    topology_of,
)
from moorage.engines.vllm.engine_caches import SEED, offload_flags, offload_variables
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


def ascend_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """310P has no graphs and no bfloat16."""
    if not context.is_310p:
        return ()
    return (
        derived_flag("Ascend 310P captures no graphs", "--enforce-eager"),
        derived_flag("Ascend 310P has no bfloat16", "--dtype", "float16"),
    )


def ascend_variables(context: LaunchContext) -> tuple[Variable, ...]:
    """Settings of Ascend's runtime."""
    if context.accelerator_type != CANN:
        return ()
    return ASCEND_VARIABLES if context.is_310p else (*ASCEND_VARIABLES, *ASCEND_VARIABLES_BUT_310P)


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
"""The variable of the time that vLLM's server waits for its engines, and its default (`envs.py`).
"""


def ready_variables(load_seconds: int) -> tuple[Variable, ...]:
    """The time that the server waits for its engines, where the spec allows more than vLLM does.

    Args:
        load_seconds: The spec's limit for loading.
    """
    if load_seconds <= READY_SECONDS:
        return ()
    reason = f"as long as `load_seconds` says; its own limit is {READY_SECONDS} s"
    return (_derived(READY, str(load_seconds), reason),)


def variables(context: LaunchContext) -> tuple[Variable, ...]:
    """The environment of a server on accelerators."""
    variables = (
        *OFFLINE,
        *LOADING,
        *cache_variables(context),
        *offload_variables(context.cache, context.accelerator_type, context.claimed, context.ranks),
        *_seed(context),
        *host_variables(context),
        *ascend_variables(context),
    )
    return without_overridden(context, variables)


def without_overridden(
    context: LaunchContext, variables: Iterable[Variable]
) -> tuple[Variable, ...]:
    """The variables that the user does not set, unless the policy overwrites these."""
    return tuple(item for item in variables if _applies(context, item))


def _applies(context: LaunchContext, item: Variable) -> bool:
    overwrites = context.policy.overwrites and item.origin != Origin.DEFAULT
    return overwrites or item.name not in context.user_variables


def _seed(context: LaunchContext) -> tuple[Variable, ...]:
    return (SEED,) if offload_flags(context.cache, context.accelerator_type) else ()


def cache_variables(context: LaunchContext) -> Iterator[Variable]:
    """The folder of compiled kernels, if there is one."""
    if context.cache_root:
        reason = "compiled kernels outlive the container"
        yield variable("VLLM_CACHE_ROOT", f"{context.cache_root}/vllm", reason)


def host_variables(context: LaunchContext) -> Iterator[Variable]:
    """Addresses, ports and interface that connect the hosts of a replica."""
    if not context.spans_hosts:
        return
    own = context.members[context.position].address
    yield _derived("VLLM_HOST_IP", own, "the address that the other hosts see")
    yield from _native(context) if joins_natively(context) else _ray(context)
    yield from _interface(context, own)


def _native(context: LaunchContext) -> Iterator[Variable]:
    """No common first port where ranks span hosts: their workers would collide."""
    shape = topology_of(context).shape
    ports = ports_of(context, shape)
    if shape != Shape.MP_ONLY:
        reason = "where the data-parallel ranks meet"
        yield _derived("VLLM_DP_MASTER_PORT", str(ports[PortUse.JOINING]), reason)
    if shape == Shape.DP_ONLY:
        yield _derived("VLLM_PORT", str(ports[PortUse.OWN]), "first port of the engine's own")


def _ray(context: LaunchContext) -> Iterator[Variable]:
    ports = ports_of(context, None, data_ranks=data_ranks(context) > 1)
    yield _derived("VLLM_PORT", str(ports[PortUse.OWN]), "first port of the engine's own")
    yield variable("RAY_LOG_TO_STDERR", "0", "Ray's log would drown the engine's")
    yield variable("RAY_BACKEND_LOG_LEVEL", "warning", "Ray's log would drown the engine's")


def _interface(context: LaunchContext, own: str) -> Iterator[Variable]:
    """The network interface of collectives, unless the user names one."""
    name, reason = context.interface, "the interface between the hosts"
    if not name:
        return
    if context.accelerator_type == CANN:
        if "HCCL_SOCKET_IFNAME" not in context.user_variables:
            yield _derived("HCCL_IF_IP", own, "the address that the other hosts see")
            yield _derived("HCCL_SOCKET_IFNAME", f"={name}", reason)
            yield _derived("GLOO_SOCKET_IFNAME", name, reason)
            yield _derived("TP_SOCKET_IFNAME", name, reason)
    elif "NCCL_SOCKET_IFNAME" not in context.user_variables:
        if context.accelerator_type != CPU:
            yield _derived("NCCL_SOCKET_IFNAME", f"={name}", reason)
        yield _derived("GLOO_SOCKET_IFNAME", name, reason)


def _derived(name: str, value: str, reason: str) -> Variable:
    return variable(name, value, reason, Origin.DERIVED)
