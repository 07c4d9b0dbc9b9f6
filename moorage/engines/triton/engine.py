"""Triton with its vLLM backend: the server, its model repository, and its probes."""

from collections.abc import Iterable, Iterator

from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.common.values import Origin
from moorage.engines.api_key import open_access_warning
from moorage.engines.companions import adapters, base_warnings
from moorage.engines.flags import Flag, default_flag, derived_flag, spec_flag, user_flag
from moorage.engines.launch import ContainerSpec, GeneratedFile, Isolation
from moorage.engines.recovery import Remedy
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import sees_more_than_claimed
from moorage.engines.triton.causes import LOG_CAUSES
from moorage.engines.triton.openai_frontend import (
    READY,
    SEPARATOR,
    frontend_address,
    frontend_command,
    frontend_refusal,
)
from moorage.engines.triton.options import DRAFTS_SINCE, RULES, argument_refusal
from moorage.engines.triton.repository import REPOSITORY, arguments, repository
from moorage.engines.vllm.arguments import claimed_flags, derived_flags
from moorage.engines.vllm.companions import draft_refusal
from moorage.engines.vllm.engine import Vllm
from moorage.engines.vllm.engine_caches import offload_warnings
from moorage.engines.vllm.launch_facts import version_of
from moorage.engines.workload import OPENAI
from moorage.images.catalogue import vllm_of
from moorage.memory.estimates import CONTEXT
from moorage.memory.need import Need
from moorage.models.profile import ModelProfile
from moorage.readiness.protocol import Phase, Probe, question, triton_request
from moorage.spec import EngineName, Mode, ModelSpec, ProbeSpec, TritonInstance
from moorage.spec.keep_alive import keep_alive_seconds

PROGRAM = "tritonserver"
KSERVE = "/v2"
SERVER_SECONDS = 30
"""Seconds that Triton waits for requests in flight after SIGTERM if the spec states none."""

CLOSED = "model-repository,shared-memory,trace,logging:moorage-closed=x\ny"
"""APIs closed to clients: loading a model runs programs, and shared memory is the backend's.

They require a header whose value has two lines, which nobody can send over HTTP/1. gRPC accepts
such a value, so it cannot be closed this way: it is off unless the spec opens it.
"""

GRPC_IS_OPEN = (
    "engine.triton.grpc: whoever reaches the port for gRPC can register shared memory and change"
    " what the server logs; it asks for no key"
)

NEVER_SLEEPS = (
    "keep_alive: without effect, because gateways count no requests over Triton's own protocol;"
    " `engine.triton.openai` serves one that they route"
)

POOL = 64 * MIB
"""Bytes of each accelerator that the server takes by default for tensors of requests."""

ULIMITS = {"memlock": -1, "stack": 64 * 2**20}
"""Limits from NVIDIA's instructions for starting the container."""


class Triton(Vllm):
    """NVIDIA's inference server with its vLLM backend, in a container."""

    name = EngineName.TRITON
    program = PROGRAM
    default_version = "26.07"
    accelerator_types = frozenset({"cuda"})
    spans_hosts = False
    automatic = False
    modes = frozenset({Mode.COMPLETION})
    modes_of_own_images = frozenset()
    switches_of_own_images = frozenset()
    lists_models = True
    api_key_variable = ""
    busy = None
    shutdown_option = "--exit-timeout-secs"
    features = frozenset({"speculative", "lora", "extended_kv_cache"})
    updates = None
    model_paths = ()
    argument_rules = RULES
    takes_arguments_of = EngineName.VLLM
    planned_by_version = True
    log_causes = (*LOG_CAUSES, *Vllm.log_causes)

    def serves(self, spec: ModelSpec, mode: Mode) -> bool:
        """Whether it serves a mode; embeddings need the OpenAI frontend."""
        return mode in self.modes or (mode == Mode.EMBEDDING and spec.engine.triton.openai)

    def base_path(self, spec: ModelSpec) -> str:
        """OpenAI's path with the OpenAI frontend, else Triton's own."""
        return OPENAI if spec.engine.triton.openai else KSERVE

    def services(self, spec: ModelSpec) -> tuple[str, ...]:
        """Metrics, and gRPC if the spec opens it; the OpenAI frontend has one port for all."""
        if spec.engine.triton.openai:
            return ()
        return ("metrics", "grpc") if spec.engine.triton.grpc else ("metrics",)

    def metrics_url(self, container: ContainerSpec) -> str:
        """The URL of Triton's metrics, and by default vLLM's, on a separate port."""
        if container.base_path == OPENAI:
            return f"{container.endpoint}/metrics"
        port = container.services.get("metrics")
        at = container.model_copy(update={"port": port})
        return f"{at.endpoint}/metrics" if port else ""

    def adapter_name(self, model: str, adapter: str) -> str:
        """The name for the OpenAI frontend; Triton's own protocol has a parameter `lora_name`."""
        return f"{model}{SEPARATOR}{adapter}"

    def argument_version(self, version: str) -> str:
        """The version of vLLM in a release of Triton."""
        return vllm_of(version)

    def vllm_versions(self, versions: Iterable[str]) -> tuple[str, ...]:
        """The versions of vLLM in its backend."""
        return tuple(map(vllm_of, versions))

    def server_bytes(self, spec: ModelSpec) -> int:
        """The server's context on each accelerator, and its pool, which the frontend cannot leave.

        The server enables access between all accelerators that it sees, which makes a context on
        each (Triton server issue 8368). A size in `server_args` is not counted.
        """
        return CONTEXT + (POOL if spec.engine.triton.openai else 0)

    def remedy(self, failure: Failure, need: Need | None) -> Remedy | None:
        """None: its arguments are in a file, which a second try would not change."""
        return None

    def sleep(self, spec: ModelSpec) -> None:
        """None, so it is stopped instead: clients cannot reach the backend's own engine."""
        return

    def refusal(self, request: LaunchRequest) -> Failure | None:
        """Refuses processes, and settings beyond the protocol or a one-accelerator instance."""
        spec = request.spec
        if not request.in_container:
            return _refused("engine.runtime: Triton is started in a container only", "docker")
        wrong = (frontend_refusal if spec.engine.triton.openai else _protocol_refusal)(request)
        wrong = wrong or argument_refusal(spec, version_of(request))
        wrong = wrong or draft_refusal(request, DRAFTS_SINCE)
        is_pinned = spec.engine.triton.instance == TritonInstance.GPU
        return wrong or (_pinned_refusal(request) if is_pinned else None)

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The server on the repository of this model alone, closed to changes by clients."""
        spec = request.spec
        if spec.engine.triton.openai:
            return frontend_command(request, REPOSITORY)
        seconds = spec.stopping.grace_seconds or SERVER_SECONDS
        return (
            derived_flag("it holds this model", PROGRAM, f"--model-repository={REPOSITORY}"),
            *_control(spec),
            *_no_pools(request),
            default_flag(
                "nobody who asks the model may change the server", f"--http-restricted-api={CLOSED}"
            ),
            derived_flag(
                "`stopping.grace_seconds`: requests in flight go on after SIGTERM",
                f"--exit-timeout-secs={seconds}",
            ),
        )

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Addresses and ports of HTTP, gRPC and metrics."""
        seat, address = request.seat, request.listen_address
        if request.spec.engine.triton.openai:
            return frontend_address(request)
        stated = Origin.DERIVED if request.spec.port == "auto" else Origin.USER
        closed = default_flag("off unless `engine.triton.grpc`", "--allow-grpc=false")
        ports = {"http": (seat.port, stated)}
        ports |= {name: (port, Origin.DERIVED) for name, port in seat.services.items()}
        listens = "inside the container; the host publishes it" if request.publishes else "`bind`"
        listening = tuple(
            flag
            for name, (port, origin) in ports.items()
            for flag in (
                derived_flag(listens, f"--{name}-address={address}"),
                Flag(tokens=(f"--{name}-port={port}",), origin=origin, reason="a claimed port"),
            )
        )
        return listening if "grpc" in ports else (*listening, closed)

    def written_words(self, request: LaunchRequest) -> tuple[tuple[str, ...], str]:
        """The server's own arguments; `engine.args` are vLLM's, and are in `model.json`."""
        return request.spec.engine.triton.server_args, "engine.triton.server_args"

    def isolation(self, request: LaunchRequest) -> Isolation:
        """The usual isolation; on accelerators with NVIDIA's limits unless the spec states them."""
        usual = super().isolation(request)
        if not request.seat.accelerators:
            return usual
        return usual.model_copy(update={"ulimits": {**ULIMITS, **usual.ulimits}})

    def files(self, request: LaunchRequest) -> tuple[GeneratedFile, ...]:
        """The model repository."""
        spec = request.spec
        if request.arguments is None:
            raise Failure(Cause.BAD_SPEC, "engine.version: no version of vLLM is known")
        flags = arguments(self.vllm_flags(request), spec.engine.arguments)
        if words := spec.engine.arguments.words:
            flags += (user_flag("engine.args", words),)
        return repository(
            spec.name, spec.engine.triton, flags, adapters(request), request.arguments
        )

    def vllm_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The flags that the rules for vLLM derive, for the release's version of vLLM."""
        reason = "the model's directory as the engine sees it"
        model = derived_flag(reason, "--model", request.engine_model_path)
        return (model, *derived_flags(request), *claimed_flags(request))

    def warnings(self, request: LaunchRequest) -> tuple[str, ...]:
        """Warnings about adapters, caches, access without a key, and `keep_alive`."""
        spec = request.spec
        sleeps = keep_alive_seconds(spec.keep_alive) is not None
        return (
            *offload_warnings(request),
            *base_warnings(request),
            *open_access_warning(request),
            *([GRPC_IS_OPEN] if spec.engine.triton.grpc else []),
            *([NEVER_SLEEPS] if sleeps and self.base_path(spec) != OPENAI else []),
        )

    def probes(self, spec: ModelSpec, profile: ModelProfile) -> tuple[Probe, ...]:
        """Live, model ready, and a generated token, because a dead backend can still be "ready"."""
        if spec.engine.triton.openai:
            return tuple(self._openai_probes(spec, profile))
        own, model = spec.readiness.probe, f"/v2/models/{spec.name}"
        path = own.path if own.path != ProbeSpec().path else "/v2/health/live"
        sampling = {"temperature": 0, "max_tokens": 1, "ignore_eos": True}
        asking, body = triton_request(spec.name, own.prompt, sampling)
        body["return_num_output_tokens"] = True
        asked = question(asking, body, spec.name, expects="generated")
        return (
            Probe(phase=Phase.LISTENING, deadline="load_seconds"),
            Probe(phase=Phase.HEALTHY, deadline="load_seconds", method="GET", path=path),
            Probe(phase=Phase.LISTED, deadline="load_seconds", method="GET", path=f"{model}/ready"),
            *([asked] if own.request else []),
        )

    def _openai_probes(self, spec: ModelSpec, profile: ModelProfile) -> Iterator[Probe]:
        stated = spec.readiness.probe.path != ProbeSpec().path
        for probe in super().probes(spec, profile):
            asks_health = probe.phase == Phase.HEALTHY and not stated
            yield probe.model_copy(update={"path": READY}) if asks_health else probe


def _protocol_refusal(request: LaunchRequest) -> Failure | None:
    """Why Triton's own protocol cannot serve the spec, or would open it to everybody."""
    spec = request.spec
    for field in ("prompts", "acceptance"):
        if getattr(spec.readiness, field):
            note = f"readiness.{field}: it is sent over OpenAI's protocol"
            return _refused(f"{note}, which `engine.triton.openai` serves", f"no {field}")
    if spec.engine.triton.grpc and spec.engine.triton.health_check:
        note = "engine.triton: with `health_check` models can be unloaded and loaded, and over"
        return _refused(f"{note} gRPC by everybody who reaches it", "one of the two")
    return None


def _control(spec: ModelSpec) -> tuple[Flag, ...]:
    """The model control mode: models load only at the start, unless a dead one must be unloaded."""
    if not spec.engine.triton.health_check:
        return (default_flag("what it holds stays", "--model-control-mode=none"),)
    return (
        spec_flag("engine.triton.health_check: unloads it", "--model-control-mode=explicit"),
        spec_flag("the spec's name", f"--load-model={spec.name}"),
    )


def _no_pools(request: LaunchRequest) -> tuple[Flag, ...]:
    """No memory for tensors on accelerators: the backend's are text, and none of it is claimed."""
    reason = "the backend's requests are text"
    accelerators = range(len(request.seat.accelerators))
    if not accelerators:
        return ()
    return (
        default_flag(reason, "--pinned-memory-pool-byte-size=0"),
        *(default_flag(reason, f"--cuda-memory-pool-byte-size={i}:0") for i in accelerators),
    )


def _pinned_refusal(request: LaunchRequest) -> Failure | None:
    """Why an instance cannot be pinned to one accelerator; None = it can."""
    number, what = len(request.seat.accelerators), "engine.triton.instance: KIND_GPU"
    if number != 1:
        return _refused(f"{what} is for one, not {number} accelerators", "KIND_MODEL")
    if sees_more_than_claimed(request):
        # The backend counts all devices that the container sees, whatever CUDA_VISIBLE_DEVICES is.
        note = "takes the first accelerator of the host, not the claimed one, in a container that"
        return _refused(f"{what} {note} sees all of them (`engine.container`)", "KIND_MODEL")
    return None


def _refused(detail: str, instead: str) -> Failure:
    return Failure(Cause.BAD_SPEC, detail, suggestion=f"Take {instead}, or `engine.name: vllm`.")
