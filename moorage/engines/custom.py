"""Any other server: the user gives image and command, and moorage derives nothing."""

from moorage.engines.base import Engine
from moorage.engines.flags import Flag, derived_flag
from moorage.engines.request import LaunchRequest
from moorage.inventory.snapshot import VENDORS
from moorage.spec import EngineName, Mode


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

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The model, behind the entrypoint that the fleet configures."""
        reason = "the model's directory as the engine sees it"
        return (derived_flag(reason, request.engine_model_path),)

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """None: its command line uses placeholders for port and name."""
        return ()
