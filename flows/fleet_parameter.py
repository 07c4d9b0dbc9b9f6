"""The parameter `fleet` of flows: its form is one field, and the API still refuses a wrong one."""

from typing import Annotated

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from moorage.inventory.fleet import Fleet


class _OneField:
    """Has a form take the fleet as JSON, instead of a field for each field of each host.

    The pages look at `type` alone, and a validator at `then` too.
    """

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "if": True, "then": handler(core)}


FleetParameter = Annotated[Fleet, _OneField()]

THIS_MACHINE = Fleet()
"""The default: the hosts of the worker where the policy names them, else its machine."""
