"""Types of flow parameters that a form shows differently from their models."""

from typing import Annotated, Any

from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from moorage.inventory.fleet import Fleet
from moorage.reports.form_schema import ADVANCED, NOT_DRAWN
from moorage.spec import ModelSpec


class _NotDrawn:
    """Marks a parameter that the API accepts and forms omit."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(core), NOT_DRAWN: True}


def _without_advanced(spec: Any) -> Any:
    """A spec from a form, with the fields of its section `advanced` moved to their own places."""
    if not (isinstance(spec, dict) and isinstance(spec.get(ADVANCED), dict)):
        return spec
    return {**spec[ADVANCED], **{name: spec[name] for name in spec if name != ADVANCED}}


SpecParameter = Annotated[ModelSpec, BeforeValidator(_without_advanced)]
"""The type of flow parameters that hold a spec."""

FleetParameter = Annotated[Fleet, _NotDrawn()]
"""The type of the flow parameter `fleet`."""

THIS_MACHINE = Fleet()
"""The default of `fleet`: the worker's hosts where the policy names them, else its machine."""
