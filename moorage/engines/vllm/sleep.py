"""vLLM's own sleep: the process stays and releases accelerator memory.

At level 1 the weights move to RAM; at level 2 they are dropped and later read from disk. Sources:
`vllm/entrypoints/serve/dev/sleep` and `vllm/device_allocator/cumem.py` of vLLM 0.32.
"""

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Flag, Variable, spec_flag, variable
from moorage.engines.request import LaunchRequest
from moorage.engines.sleep import EngineSleep, SleepStep
from moorage.memory.need import Need
from moorage.spec import DraftMethod, ModelSpec

DEV_MODE = "VLLM_SERVER_DEV_MODE"
FIELD = "sleep_level"
SLEEPERS = frozenset({"cuda", "rocm"})
"""Accelerator types whose memory vLLM's allocator can release."""

RELEASED = frozenset({"weights", "kv_cache"})
"""Memory terms that a sleeping engine releases; graphs, buffers and context stay."""

WEIGHTS_IN_RAM, NO_WEIGHTS = 1, 2


def sleep_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The switch of sleep mode, if the spec has a level."""
    return (spec_flag(FIELD, "--enable-sleep-mode"),) if request.spec.sleep_level else ()


def sleep_variables(request: LaunchRequest) -> tuple[Variable, ...]:
    """The variable that opens the endpoints for sleeping and waking."""
    if not request.spec.sleep_level:
        return ()
    return (variable(DEV_MODE, "1", f"{FIELD}: it opens /sleep and /wake_up", Origin.USER),)


def sleep_refusal(request: LaunchRequest) -> Failure | None:
    """Why a seat's engine cannot sleep by itself; None = it can, or the spec wants no sleep."""
    kind, draft = request.seat.accelerator_type, request.spec.speculative
    if request.spec.sleep_level == NO_WEIGHTS and draft and draft.method != DraftMethod.NGRAM:
        return Failure(
            Cause.BAD_SPEC,
            f"{FIELD}: at level {NO_WEIGHTS} vLLM loses the weights of the draft"
            f" (`speculative.method: {draft.method}`), and does not read them again",
            suggestion=f"Set `{FIELD}: {WEIGHTS_IN_RAM}`, or leave `speculative` out.",
        )
    if not request.spec.sleep_level or (kind in SLEEPERS and not request.spans_hosts):
        return None
    where = "over several hosts" if request.spans_hosts else f"on {kind}"
    return Failure(
        Cause.BAD_SPEC,
        f"{FIELD}: vLLM does not sleep {where}",
        suggestion=f"Leave `{FIELD}` out: the engine is stopped when the model falls asleep.",
    )


def engine_sleep(spec: ModelSpec) -> EngineSleep | None:
    """The requests that put an engine to sleep and wake it; None = the spec wants no sleep."""
    level = spec.sleep_level
    if not level:
        return None
    woken: tuple[SleepStep, ...] = (SleepStep(path="/wake_up"),)
    if level == NO_WEIGHTS:
        woken = (
            SleepStep(path="/wake_up", parameters={"tags": "weights"}),
            SleepStep(path="/collective_rpc", body={"method": "reload_weights"}),
            SleepStep(path="/wake_up", parameters={"tags": "kv_cache"}),
        )
    asleep = SleepStep(path="/sleep", parameters={"level": str(level), "mode": "wait"})
    reads = level == NO_WEIGHTS
    return EngineSleep(sleep=(asleep,), wake=woken, state="/is_sleeping", reads_files=reads)


def bytes_asleep(need: Need | None, claimed: int) -> int:
    """Bytes of one accelerator that a sleeping engine keeps; the whole claim if unpredicted."""
    if need is None or need.stated is not None:
        return claimed
    given = sum(term.bytes for term in need.terms if term.name in RELEASED)
    return max(0, claimed - given)
