"""The second try: a failed start is repeated with a number that the engine named.

A number that the engine names is what the machine can do; the planned one was a prediction or a
user's value. One such number may replace the planned one, once for a release, and the release
records it. The claims stay as they are: a correction only ever takes less.
"""

from collections.abc import Collection

from moorage.common.failures import Cause
from moorage.common.values import Origin, Value
from moorage.engines.flags import Flag
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.spec import ModelSpec


class Remedy(Value):
    """A number with which a failed engine would start, instead of the one before."""

    option: str
    before: str
    value: str
    fields: tuple[str, ...] = ()
    """Fields of the spec that state the same."""

    reason: str


class Correction(Value):
    """The change of the second try of a release, and the cause and log line of the first."""

    option: str
    before: str
    value: str
    stated: str = ""
    """Where the user had stated it, such as `context`; empty = it was derived."""

    cause: Cause
    reason: str
    evidence: str = ""

    @property
    def summary(self) -> str:
        """The correction in a line."""
        stated = f", though `{self.stated}` states it" if self.stated else ""
        return f"{self.option} {self.value} instead of {self.before}{stated}: {self.reason}"


def correction_for(
    spec: ModelSpec, cause: Cause, evidence: str, remedy: Remedy | None
) -> Correction | None:
    """The correction that a remedy leads to; None = there is no second try.

    A command line of the user's own is not changed: only its author knows what it starts.
    """
    if remedy is None or not spec.readiness.second_try or spec.engine.command is not None:
        return None
    return Correction(
        option=remedy.option,
        before=remedy.before,
        value=remedy.value,
        stated=_stated(spec, remedy),
        cause=cause,
        reason=remedy.reason,
        evidence=evidence,
    )


def with_correction(plan: LaunchPlan, correction: Correction, names: Collection[str]) -> LaunchPlan:
    """The plan of the first try, corrected in the named containers: those that do not run."""
    containers = tuple(
        _amended(spec, correction) if spec.name in names and spec.runs_engine else spec
        for spec in plan.containers
    )
    corrected = plan.model_copy(update={"containers": containers})
    return corrected.with_warnings([f"second try with {correction.summary}"])


def _stated(spec: ModelSpec, remedy: Remedy) -> str:
    if spec.engine.arguments.states(remedy.option):
        return "engine.args"
    return next((name for name in remedy.fields if getattr(spec, name) != "auto"), "")


def _amended(spec: ContainerSpec, correction: Correction) -> ContainerSpec:
    """The option goes last: an engine takes the last one, and the user's words stay."""
    option = correction.option
    kept = [f for f in spec.command if len(f.tokens) != 2 or f.tokens[0] != option]
    flag = Flag(
        tokens=(option, correction.value),
        origin=Origin.DERIVED,
        reason=f"second try: {correction.reason}",
    )
    return spec.model_copy(update={"command": (*kept, flag)})
