"""The second try: a failed start is repeated with a value that the engine named.

A value named by the engine is possible on the machine; the planned value was a prediction or the
user's. It may replace the planned value once per release, and the release records the change. The
claims stay unchanged, because a correction only ever takes less.
"""

from collections.abc import Collection

from moorage.common.failures import Cause
from moorage.common.values import Origin, Value
from moorage.engines.flags import Flag
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.spec import ModelSpec


class Remedy(Value):
    """A value with which a failed engine would start, instead of the value before."""

    option: str
    before: str
    value: str
    fields: tuple[str, ...] = ()
    """Fields of the spec for the same setting."""

    reason: str


class Correction(Value):
    """The change in the second try of a release, with cause and log line of the first failure."""

    option: str
    before: str
    value: str
    stated: str = ""
    """Where the user stated the value before, such as `context`; empty = it was derived."""

    cause: Cause
    reason: str
    evidence: str = ""

    @property
    def summary(self) -> str:
        """The correction in one line."""
        stated = f", though `{self.stated}` states it" if self.stated else ""
        return f"{self.option} {self.value} instead of {self.before}{stated}: {self.reason}"


def correction_for(
    spec: ModelSpec, cause: Cause, evidence: str, remedy: Remedy | None
) -> Correction | None:
    """The correction for a remedy; None = no second try.

    The user's own command line is never changed: only its author knows what it starts.
    """
    if remedy is None or not spec.readiness.second_try or spec.engine.command is not None:
        return None
    named = remedy.model_dump(exclude={"fields"})
    return Correction(**named, stated=_stated(spec, remedy), cause=cause, evidence=evidence)


def with_correction(plan: LaunchPlan, correction: Correction, names: Collection[str]) -> LaunchPlan:
    """The plan of the first try, corrected in the named containers, which are not running."""
    containers = (
        _amended(spec, correction) if spec.name in names and spec.runs_engine else spec
        for spec in plan.containers
    )
    corrected = plan.with_containers(containers)
    return corrected.with_warnings([f"second try with {correction.summary}"])


def _stated(spec: ModelSpec, remedy: Remedy) -> str:
    if spec.engine.arguments.states(remedy.option):
        return "engine.args"
    return next((name for name in remedy.fields if getattr(spec, name) != "auto"), "")


def _amended(spec: ContainerSpec, correction: Correction) -> ContainerSpec:
    """The container with the option appended; as the last one it wins over the user's words."""
    option = correction.option
    kept = [f for f in spec.command if len(f.tokens) != 2 or f.tokens[0] != option]
    flag = Flag(
        tokens=(option, correction.value),
        origin=Origin.DERIVED,
        reason=f"second try: {correction.reason}",
    )
    return spec.model_copy(update={"command": (*kept, flag)})
