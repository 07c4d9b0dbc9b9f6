"""Hugging Face transformers: `transformers serve`, the engine that every machine can run.

It has no option for a served name and answers only to the path with which it was started. So it
starts in a directory that contains the model (as a process: a link to it) under its served name.
"""

from moorage.engines.api_key import open_access_warning
from moorage.engines.base import Engine
from moorage.engines.command_line import port_flag, trust_flags
from moorage.engines.flags import Flag, Variable, derived_flag, spec_flag, variable
from moorage.engines.launch import Link
from moorage.engines.request import MODELS_FOLDER, LaunchRequest
from moorage.engines.schema.argument import Rules, reserved_options
from moorage.placement.placement import CPU
from moorage.spec import EngineName, Mode

ADDRESS = "moorage decides how the engine is reached, and asks it there"
THREAD = "SIGTERM would cut off requests in flight: it reaches a server only in the main thread"

RESERVED_OPTIONS = reserved_options(
    {"placement": "--device", "trust_remote_code": "--trust-remote-code"},
    (
        ("port", ADDRESS, "--port"),
        ("hosts[].bind", ADDRESS, "--host"),
        ("", "the engine would print its help and end", "--help"),
        ("", THREAD, "--non-blocking"),
    ),
)


class Transformers(Engine):
    """The OpenAI-compatible server that comes with transformers."""

    name = EngineName.TRANSFORMERS
    program = "transformers"
    default_version = "5.23.0"
    accelerator_types = frozenset({"cuda", "rocm"})
    runs_on_cpu = True
    modes = frozenset({Mode.COMPLETION})
    # `/v1/models` lists models in the hub's cache, never a local directory.
    lists_models = False
    argument_rules = Rules(title="transformers", reserved=RESERVED_OPTIONS)
    warnings = staticmethod(open_access_warning)

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """`transformers serve NAME` and the device."""
        on_cpu = request.seat.accelerator_type == CPU
        reason = "the spec's name; the model is there in the working directory"
        return (
            spec_flag(reason, self.start_of(request), "serve", request.spec.name),
            derived_flag("placed on CPU", "--device", "cpu")
            if on_cpu
            else derived_flag("placed on accelerators", "--device", "auto"),
            *trust_flags(request.spec),
        )

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Host and port."""
        listens = derived_flag("the host's `bind`", "--host", request.listen_address)
        return (listens, port_flag(request))

    def environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        """Offline mode, as the model is already here."""
        return (variable("HF_HUB_OFFLINE", "1", "the model is already here"),)

    def working_directory(self, request: LaunchRequest) -> str:
        """The folder in which the model is mounted under its served name."""
        return MODELS_FOLDER

    def links(self, request: LaunchRequest) -> tuple[Link, ...]:
        """A link to the model under its served name."""
        return (Link(name=request.spec.name, target=request.model.path),)
