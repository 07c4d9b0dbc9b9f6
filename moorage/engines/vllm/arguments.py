"""vLLM's derived arguments, in the order in which they stand."""

from __future__ import annotations

from moorage.common.values import Origin
from moorage.engines.launch import Flag
from moorage.engines.vllm.adapters import adapter_flags
from moorage.engines.vllm.ascend import ascend_flags
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.distributed import distributed_flags
from moorage.engines.vllm.gates import gated_flags
from moorage.engines.vllm.length import length_flags
from moorage.engines.vllm.offload import offload_flags
from moorage.engines.vllm.parallel import parallel_flags
from moorage.engines.vllm.rule import derived, wanted
from moorage.engines.vllm.shutdown import shutdown_flags
from moorage.engines.vllm.speculative import speculative_flags


def derived_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """Everything between the model and the user's own arguments.

    What the user writes wins: the flags that he decides about are dropped afterwards
    (`kept_flags`), so a rule need not look for its own name.

    Raises:
        Failure: `BAD_SPEC` when what the user states cannot be started.
    """
    return (
        *_omni(context),
        *length_flags(context),
        *parallel_flags(context),
        *speculative_flags(context.speculative),
        *gated_flags(context),
        *shutdown_flags(context),
        *distributed_flags(context),
        *offload_flags(context.cache, context.accelerator_type),
        *ascend_flags(context),
        *adapter_flags(context.adapters, context.name, context.words, context.updates),
    )


def serving_flags(
    context: LaunchContext,
    listens: str = "the address on which the engine listens",
    port_origin: Origin = Origin.DERIVED,
) -> tuple[Flag, ...]:
    """Where it listens, and under which name it serves.

    Args:
        context: The container.
        listens: Why at this address.
        port_origin: Whether the user chose the port.
    """
    port = ("--port", str(context.ports[0]))
    return (
        derived(listens, "--host", context.address),
        Flag(tokens=port, origin=port_origin, reason="the port that was claimed"),
        wanted("the spec's name", "--served-model-name", context.name),
    )


def _omni(context: LaunchContext) -> tuple[Flag, ...]:
    return (derived("makes images or speech", "--omni"),) if context.omni else ()
