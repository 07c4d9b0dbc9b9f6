"""Any other server: image and command are the user's, nothing is derived for it."""

from moorage.common.units import GIB
from moorage.engines.base import Engine
from moorage.engines.flags import Flag, derived_flag
from moorage.engines.request import LaunchRequest
from moorage.inventory.snapshot import VENDORS
from moorage.models.profile import ModelProfile
from moorage.spec import EngineName, Mode

PROCESS_BYTES = 2 * GIB
"""RAM for the server itself without the weights, where the spec does not state `placement.ram`."""


class Custom(Engine):
    """A server of which moorage knows only its command line and its API."""

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
        """None: it says with placeholders where its port and name belong."""
        return ()
