"""The user's engine arguments as the rules read them: parallel sizes, switches, executor."""

from enum import StrEnum
from math import prod

from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.placement.parallelism import ParallelSizes
from moorage.spec.arguments import EngineArguments

OFF = frozenset({"0", "false", "no", "off", "f", "n"})
"""Values that switch a boolean option off; anything else switches it on."""

FLAGS = {
    "tensor": ("tensor-parallel-size", "tp"),
    "pipeline": ("pipeline-parallel-size", "pp"),
    "prefill_context": ("prefill-context-parallel-size", "pcp"),
    "data": ("data-parallel-size", "dp"),
    "data_local": ("data-parallel-size-local", "dpl"),
}
NATIVE_SINCE = "0.18"
"""From this version of vLLM on, a custom build is assumed to join hosts without Ray."""


class ErrorClass(StrEnum):
    """Ways in which a spec contradicts itself or the model, in the order of the checks."""

    NON_POSITIVE = "non_positive_parallelism"
    COUNT = "gpu_count_mismatch"
    HEADS = "tp_attention_heads"
    VISION_HEADS = "tp_vision_heads"
    VOCABULARY = "tp_vocab_size"
    LOCAL_RANKS = "dp_not_multiple_of_local"
    UNREADABLE = "unreadable_parameters"


def contradiction(error: ErrorClass, meaning: str) -> Failure:
    """The failure `BAD_SPEC`, with the error class in `named`."""
    return Failure(
        Cause.BAD_SPEC,
        f"engine.args: {meaning}",
        suggestion="Leave the parallel sizes out: `policy: baseline` derives them.",
        named={"class": error},
    )


class Parameters:
    """Options by name, without dashes. The first value of a repeated option counts.

    Names are compared as written: `--tensor_parallel_size` is a different option.
    """

    def __init__(self, arguments: EngineArguments) -> None:
        self._pairs = tuple(
            (option.written.lstrip("-"), next(iter(option.values), None))
            for option in arguments.options
        )

    def value(self, *names: str) -> str | None:
        """Value of the first of these options that has one."""
        return next((v for name, v in self._pairs if name in names and v is not None), None)

    def number(self, *names: str) -> int | None:
        """Value of the first of these options as a whole number; None if it is not one."""
        try:
            return int(self.value(*names) or "")
        except ValueError:
            return None

    def switch(self, name: str) -> bool:
        """Whether a boolean option is on."""
        for option, value in self._pairs:
            if option == name:
                return value is None or value.lower() not in OFF
        return False


def parallel_sizes(parameters: Parameters, accelerators: int | None = None) -> ParallelSizes:
    """The parallel sizes; `accelerators` of each replica are the tensor-parallel size by default.

    Raises:
        Failure: `NON_POSITIVE`.
    """
    if accelerators and all(parameters.value(*flags) is None for flags in FLAGS.values()):
        return ParallelSizes(tensor=accelerators)
    sizes = {field: parameters.number(*flags) for field, flags in FLAGS.items()}
    for field, size in sizes.items():
        if size is not None and size <= 0:
            meaning = f"--{FLAGS[field][0]} {size} must be positive"
            raise contradiction(ErrorClass.NON_POSITIVE, meaning)
    return ParallelSizes(**sizes)


def world_size(sizes: ParallelSizes, parameters: Parameters) -> int | None:
    """Accelerators of one replica by its parallel sizes; None if the sizes leave the number open.

    With hybrid load balancing the data-parallel size includes ranks of other deployments, so the
    local size replaces it.
    """
    data = sizes.data
    if parameters.switch("data-parallel-hybrid-lb"):
        if sizes.data_local is None:
            return None
        data = sizes.data_local
    own = (sizes.tensor, sizes.pipeline, sizes.prefill_context, data)
    stated = [size for size in own if size]
    return prod(stated) if stated else None


def is_native(version: str | None, parameters: Parameters) -> bool:
    """Whether vLLM itself joins hosts (`mp`); else Ray does."""
    executor = parameters.value("distributed-executor-backend")
    if executor is not None:
        return executor == "mp"
    own_build = "-custom" in (version or "")
    return own_build and version_key(version or "") >= version_key(NATIVE_SINCE)


def require_whole_ranks(sizes: ParallelSizes) -> None:
    """Raise `LOCAL_RANKS` if natively joined hosts cannot share the ranks evenly."""
    if sizes.data is not None and sizes.data_local is not None and sizes.data % sizes.data_local:
        meaning = (
            f"--data-parallel-size {sizes.data} must be a multiple of "
            f"--data-parallel-size-local {sizes.data_local}"
        )
        raise contradiction(ErrorClass.LOCAL_RANKS, meaning)
