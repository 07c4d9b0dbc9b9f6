"""The SGLang server as an engine."""

from collections.abc import Mapping
from typing import ClassVar

from moorage.common.values import Origin
from moorage.engines.api_key import open_access_warning
from moorage.engines.base import Engine
from moorage.engines.command_line import named_server_flags
from moorage.engines.companions import base_warnings
from moorage.engines.flags import Flag, Variable, derived_flag, variable
from moorage.engines.request import LaunchRequest
from moorage.engines.schema.argument import Rules
from moorage.engines.sglang.arguments import IN_FLIGHT, derived_flags
from moorage.engines.sglang.causes import LOG_CAUSES
from moorage.engines.sglang.distributed import (
    MEETING_PORTS,
    divides_attention,
    divisors,
    parallelism,
)
from moorage.engines.sglang.options import ALIASES, RAM_OPTIONS, RESERVED_OPTIONS
from moorage.engines.sglang.refusals import refusal_of
from moorage.engines.updates import AdapterUpdates
from moorage.models.profile import ModelProfile
from moorage.placement.parallelism import Parallelism
from moorage.readiness.protocol import Phase, Probe
from moorage.spec import EngineName, Mode, ModelSpec, ProbeSpec

MODULE = ("python3", "-m", "sglang.launch_server")
HEALTH = "/health_generate"
"""Answers 503 until warm-up ends, and 200 only after a generated token; `/v1/models` is earlier."""

RERANK = "/v1/rerank"


class Sglang(Engine):
    """The OpenAI-compatible server of SGLang."""

    name = EngineName.SGLANG
    program = "sglang"
    default_version = "0.5.23"
    accelerator_types = frozenset({"cuda", "rocm"})
    runs_on_cpu = False
    automatic = False
    reserves_cache = True
    spans_hosts = True
    modes = frozenset({Mode.COMPLETION, Mode.EMBEDDING, Mode.RERANKING, Mode.TRANSCRIPTION})
    lists_models = True
    busy = IN_FLIGHT
    aliases = ALIASES
    ram_options = RAM_OPTIONS
    features = frozenset({"speculative", "lora", "lora_updates"})
    updates: ClassVar[AdapterUpdates | None] = AdapterUpdates(
        load="/load_lora_adapter", unload="/unload_lora_adapter"
    )
    argument_rules = Rules(title="SGLang", reserved=RESERVED_OPTIONS)
    log_causes = LOG_CAUSES
    # A follower serves too, but only its health.
    serving_flags = staticmethod(named_server_flags)
    refusal = staticmethod(refusal_of)

    def parallelism(self, spec: ModelSpec) -> Parallelism | None:
        """The stated sizes; `--enable-dp-attention` makes no copies of the model."""
        return parallelism(spec.engine.arguments)

    def tensor_divisors(self, spec: ModelSpec) -> Mapping[str, int]:
        """The groups within the tensor-parallel ranks: of attention and of experts."""
        return divisors(spec.engine.arguments)

    def meeting_ports(self, spec: ModelSpec) -> int:
        """The ports of groups of attention, which talk over TCP on one host too."""
        return MEETING_PORTS if divides_attention(spec.engine.arguments) else 0

    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """The weights alone, as it is never placed on CPU."""
        return profile.weight_bytes, 0

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The server and its model, then the rules of `arguments.py`."""
        installed = None if request.in_container else request.host.program(self.name)
        start = (installed.path, "serve") if installed else MODULE
        reason = "the model's directory as the engine sees it"
        model = derived_flag(reason, *start, "--model-path", request.engine_model_path)
        return (model, *derived_flags(request))

    def environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        """Offline mode; over several hosts, also the network interface between them."""
        offline = variable("HF_HUB_OFFLINE", "1", "the model is already here")
        name = request.host.interface if request.spans_hosts else ""
        if not name:
            return (offline,)
        reason = "the interface between the hosts"
        return (
            offline,
            variable("NCCL_SOCKET_IFNAME", f"={name}", reason, Origin.DERIVED),
            variable("GLOO_SOCKET_IFNAME", name, reason, Origin.DERIVED),
        )

    def warnings(self, request: LaunchRequest) -> tuple[str, ...]:
        """Warnings about adapters, their names, and a server without a key."""
        spec = request.spec
        names = [self.adapter_name(spec.name, item.name) for item in spec.lora]
        names += [self.adapter_name(spec.name, "ADAPTER")] * (spec.lora_updates is not None)
        naming = f"lora: requests name an adapter as {', '.join(names)}"
        exposed = "lora_updates: whoever reaches the port may change what is served"
        return (
            *base_warnings(request),
            *([naming] if names else []),
            *([exposed] if spec.lora_updates else []),
            *(open_access_warning(request) if request.leads else ()),
        )

    def adapter_name(self, model: str, adapter: str) -> str:
        """`MODEL:ADAPTER`; the adapter's name alone selects the base model (0.5.23).

        Source: `serving_base.py`.
        """
        return f"{model}:{adapter}"

    def probes(self, spec: ModelSpec, profile: ModelProfile) -> tuple[Probe, ...]:
        """The usual probes; the health probe generates a token unless the spec names a path."""
        own = spec.readiness.probe.path != ProbeSpec().path
        return tuple(
            probe.model_copy(update={"path": HEALTH})
            if probe.phase == Phase.HEALTHY and not own
            else probe.model_copy(update={"path": RERANK})
            if probe.expects == "scores"
            else probe
            for probe in super().probes(spec, profile)
        )
