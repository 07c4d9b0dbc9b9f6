"""How a flow run ended, or how it would end."""

from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class FlowResult(Generic[R]):
    """The name and the message of a final state, and the result.

    Attributes:
        name: `Completed`, or what says more, such as `Unchanged`.
    """

    name: str
    message: str
    result: R
