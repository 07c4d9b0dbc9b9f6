"""Ascend's accelerators: what they cannot do, and how they communicate."""

from __future__ import annotations

from moorage.engines.launch import Flag, Variable
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.rule import derived, variable

CANN = "cann"
EVERYWHERE = (
    variable("TASK_QUEUE_ENABLE", "1", "hands work to the device in a queue"),
    variable("CPU_AFFINITY_CONF", "1", "keeps threads near their device"),
    variable("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True", "memory splits up less"),
    variable("HCCL_CONNECT_TIMEOUT", "7200", "seconds; many devices take long to meet"),
    variable("HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", "TRUE", "posts straight over the bus"),
)
NOT_ON_310P = (
    variable("HCCL_EXEC_TIMEOUT", "0", "a long step is not an error"),
    variable("HCCL_OP_EXPANSION_MODE", "AIV", "the vector cores schedule the communication"),
)


def ascend_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """310P has no graphs and no bfloat16."""
    if not context.is_310p:
        return ()
    return (
        derived("Ascend 310P captures no graphs", "--enforce-eager"),
        derived("Ascend 310P has no bfloat16", "--dtype", "float16"),
    )


def ascend_variables(context: LaunchContext) -> tuple[Variable, ...]:
    """What the runtime of Ascend should know."""
    if context.accelerator_type != CANN:
        return ()
    return EVERYWHERE if context.is_310p else (*EVERYWHERE, *NOT_ON_310P)


def is_310p(families: tuple[str, ...]) -> bool:
    """Whether all accelerators are Ascend 310P, by the names of their chips."""
    return bool(families) and all(name.lower().startswith("ascend310p") for name in families)
