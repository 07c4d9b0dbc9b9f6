"""What SGLang refuses to start, known before it is tried."""

from moorage.common.failures import Cause, Failure
from moorage.engines.request import LaunchRequest
from moorage.engines.sglang.distributed import copies, divisors
from moorage.engines.sglang.options import (
    ALGORITHM,
    ALGORITHMS,
    ALIASES,
    ATTENTION_DATA,
    DATA,
    PIPELINE,
    TENSOR,
)
from moorage.spec import DraftMethod

PIPELINED_DRAFTS = "SGLANG_ENABLE_PP_SPEC"
"""Variable that lets pipeline stages draft, as an experiment of SGLang 0.5.23."""


def refusal_of(request: LaunchRequest) -> Failure | None:
    """Why SGLang would not start a seat as it is requested; None = it starts."""
    checks = (_unread, _copies, _uneven_hosts, _adapters_of_copies, _drafts, _drafts_of_adapters)
    return next(filter(None, (check(request) for check in checks)), None)


def _unread(request: LaunchRequest) -> Failure | None:
    """The placement does not read the short names of sizes."""
    for name in (TENSOR, PIPELINE, DATA):
        written = [short for short in ALIASES[name] if request.spec.engine.arguments.states(short)]
        if written:
            return Failure(
                Cause.BAD_SPEC,
                f"engine.args: {written[0]} is not counted with when the model is placed",
                suggestion=f"Write {name}, or leave it out: it is derived from the placement.",
            )
    return None


def _copies(request: LaunchRequest) -> Failure | None:
    """Copies span no hosts, and do not divide their attention."""
    args = request.spec.engine.arguments
    if copies(args) <= 1:
        return None
    if ATTENTION_DATA in divisors(args):
        why = f"SGLang runs no data-parallel copies with {ATTENTION_DATA}"
        return Failure(
            Cause.BAD_SPEC,
            f"engine.args: {DATA}: {why}",
            suggestion=f"Leave one of the two out; `replicas` makes copies with {ATTENTION_DATA}.",
        )
    if request.spans_hosts:
        return Failure(
            Cause.BAD_SPEC,
            f"engine.args: {DATA}: SGLang runs no data-parallel copies over several hosts",
            suggestion=f"Use `replicas`, or `{ATTENTION_DATA}` for data-parallel attention.",
        )
    return None


def _uneven_hosts(request: LaunchRequest) -> Failure | None:
    """Every host gives the same number of ranks."""
    counts = [len(peer.seat.accelerators) for peer in request.peers]
    if len(set(counts)) <= 1:
        return None
    return Failure(
        Cause.BAD_SPEC,
        "SGLang gives every host of a replica the same number of ranks, and these hosts have "
        + ", ".join(map(str, counts)),
        suggestion="Name hosts with as many accelerators each in `placement.accelerators`.",
    )


def _adapters_of_copies(request: LaunchRequest) -> Failure | None:
    """Data-parallel copies fail to load adapters later."""
    if request.spec.lora_updates is None or copies(request.spec.engine.arguments) <= 1:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"lora_updates: SGLang does not load adapters later with {DATA} above 1",
        suggestion=f"Leave {DATA} or `lora_updates` out; `replicas` serves more.",
    )


def _drafts(request: LaunchRequest) -> Failure | None:
    """Pipeline stages draft on prefill nodes only (`check_pipeline_parallel_compat`, 0.5.23)."""
    spec, ranks = request.spec, request.seat.tensor * request.seat.pipeline
    prefills = spec.engine.arguments.value("--disaggregation-mode") == "prefill"
    experiment = PIPELINED_DRAFTS in spec.engine.env
    if request.seat.pipeline <= 1 or not _algorithm(request) or prefills or experiment:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"speculative: SGLang does not draft with {request.seat.pipeline} pipeline stages",
        suggestion=f"Write `{TENSOR} {ranks}` in `engine.args`, for tensor parallelism over all"
        " accelerators and hosts, or leave `speculative` out.",
    )


def _drafts_of_adapters(request: LaunchRequest) -> Failure | None:
    """A draft model of its own does not go with adapters (`arg_groups/lora_hook.py`, 0.5.23)."""
    spec, alone = request.spec, ALGORITHMS[DraftMethod.DRAFT_MODEL]
    field = "lora" if spec.lora else "lora_updates" if spec.lora_updates else ""
    if not field or _algorithm(request) != alone:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"{field}: SGLang serves no adapters with `speculative.method: draft_model`",
        suggestion="Take another `speculative.method`, or leave one of the two out.",
    )


def _algorithm(request: LaunchRequest) -> str:
    """How it drafts: by the field of the spec or by its argument; empty = not at all."""
    if speculative := request.spec.speculative:
        return ALGORITHMS[speculative.method]
    return request.spec.engine.arguments.value(ALGORITHM) or ""
