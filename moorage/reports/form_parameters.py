"""Types of the parameters of flows that a form draws otherwise than their fields say."""

from typing import Annotated, Any

from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from moorage.inventory.fleet import Fleet
from moorage.reports.form_schema import ADVANCED, NOT_DRAWN
from moorage.spec import ModelSpec


class _NotDrawn:
    """Marks a parameter that a form leaves out, and the API takes."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(core), NOT_DRAWN: True}


def _without_advanced(spec: Any) -> Any:
    """A spec as it came from a form, with its advanced fields where they belong."""
    if not (isinstance(spec, dict) and isinstance(spec.get(ADVANCED), dict)):
        return spec
    return {**spec[ADVANCED], **{name: spec[name] for name in spec if name != ADVANCED}}


SpecParameter = Annotated[ModelSpec, BeforeValidator(_without_advanced)]
"""A parameter of flows that is a spec."""

FleetParameter = Annotated[Fleet, _NotDrawn()]
"""The parameter `fleet` of flows."""

THIS_MACHINE = Fleet()
"""Its default: the hosts of the worker where the policy names them, else its machine."""
