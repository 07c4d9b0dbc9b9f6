"""Runbooks: each flow chains tasks and reads like prose.

Importing them closes the parameter schemas: the API refuses a name that the flow has not. Prefect's
own schemas leave other names open, and a run that has one crashes before its flow begins. Both
`moorage serve` and `prefect deploy` import the flows and then make their schemas; neither lets a
schema be given (Prefect 3.8, `generate_parameter_schema`).
"""

from typing import Any

from prefect.utilities import callables


class ClosedParameterSchema(callables.ParameterSchema):
    """The schema of a flow's parameters, without room for others."""

    additionalProperties: bool

    def __init__(self, **schema: Any) -> None:
        # Set here and not left to a default: Prefect sends only the fields that were set.
        super().__init__(**{"additionalProperties": False, **schema})


callables.ParameterSchema = ClosedParameterSchema  # type: ignore[misc]
