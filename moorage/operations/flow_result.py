"""The result of a flow run or of its dry run."""

from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class FlowResult(Generic[R]):
    """Name and message of a final state, and the result.

    Attributes:
        name: `Completed`, or a more specific name such as `Unchanged`.
    """

    name: str
    message: str
    result: R
