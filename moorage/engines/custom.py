"""Any other server: the user gives image and command, and moorage derives nothing."""

from moorage.common.units import GIB
from moorage.engines.base import Engine
from moorage.engines.flags import Flag, derived_flag
from moorage.engines.request import LaunchRequest
from moorage.inventory.snapshot import VENDORS
from moorage.models.profile import ModelProfile
from moorage.spec import EngineName, Mode

PROCESS_BYTES = 2 * GIB
"""RAM of the server itself, without weights, if the spec does not state `placement.ram`."""


class Custom(Engine):
    """A server whose command line and API are all that moorage knows."""

    name = EngineName.CUSTOM
    program = ""
    default_version = ""
    accelerator_types = frozenset(VENDORS)
    runs_on_cpu = True
    predictable = False
    modes = frozenset(Mode) - {Mode.AUTO}
    lists_models = False

    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """Weights and the server."""
        return int(profile.weight_bytes * 1.2) + PROCESS_BYTES, 0

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The model, behind the entrypoint that the fleet configures."""
        reason = "the model's directory as the engine sees it"
        return (derived_flag(reason, request.engine_model_path),)

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """None: its command line uses placeholders for port and name."""
        return ()
