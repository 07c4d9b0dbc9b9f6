"""What a policy does not allow, and the failure that tells all of it at once."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.redaction import Redactor
from moorage.common.values import Value

LONGEST = 80
PLAIN = Redactor({})


class Violation(Value):
    """One thing that a policy does not allow.

    Attributes:
        rule: Path of the rule in the policy, such as `api.commands`.
        field: Path of the field of the spec, or the name of the run's parameter.
        found: What stands there.
        allowed: What the rule allows.
        file: Where the rule is written, or `the default policy`.
    """

    rule: str
    field: str
    found: str
    allowed: str
    file: str

    def __str__(self) -> str:
        return (
            f"{self.field}: found {self.found}; `{self.rule}` of {self.file} allows {self.allowed}"
        )


class PolicyRefused(Failure):
    """That a policy does not allow a run; `violations` holds each reason."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(Cause.POLICY_REFUSED, "\n".join(map(str, violations)))
        self.violations = tuple(violations)

    def __reduce__(self) -> tuple[object, ...]:
        return PolicyRefused, (self.violations,)


def shortened(found: object) -> str:
    """A value for a message, without what looks like a secret."""
    text = PLAIN(repr(found))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
