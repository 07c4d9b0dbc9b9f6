"""Parameter schemas that know all parameters: the API refuses a name that the flow has not.

Prefect's own schemas leave other names open, and a run that has one crashes as it begins, before it
is a run of ours. Both `moorage serve` and `prefect deploy` import the flows and then make their
schemas; neither lets a schema be given (Prefect 3.8, `generate_parameter_schema`).
"""

from __future__ import annotations

from typing import Any

from prefect.utilities import callables


class ClosedParameterSchema(callables.ParameterSchema):
    """The schema of a flow's parameters, without room for others."""

    additionalProperties: bool

    def __init__(self, **schema: Any) -> None:
        # Said, not left to a default: Prefect sends only what was said.
        super().__init__(**{"additionalProperties": False, **schema})


def close_parameter_schemas() -> None:
    """Let Prefect make closed schemas in this process."""
    callables.ParameterSchema = ClosedParameterSchema  # type: ignore[misc]
