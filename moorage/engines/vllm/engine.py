"""The vLLM OpenAI-compatible server as an engine."""

from collections.abc import Iterable
from typing import ClassVar

from moorage.common.failures import Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.base import Busy, Engine
from moorage.engines.command_line import named_server_flags
from moorage.engines.companions import base_warnings
from moorage.engines.flags import Flag, Variable, derived_flag, variable
from moorage.engines.launch import ContainerSpec, Mount
from moorage.engines.request import LaunchRequest
from moorage.engines.schema.argument import Rules
from moorage.engines.updates import AdapterUpdates
from moorage.engines.vllm.arguments import (
    IN_FLIGHT,
    OPTION,
    claimed_flags,
    derived_flags,
    eager_flags,
)
from moorage.engines.vllm.causes import LOG_CAUSES
from moorage.engines.vllm.companions import (
    draft_refusal,
    memory_arguments,
    update_variables,
    update_warnings,
)
from moorage.engines.vllm.distributed import is_headless, wanted_executor, words_without_server
from moorage.engines.vllm.engine_caches import (
    cache_mounts,
    kept_cache_variables,
    offload_warnings,
    ram_of_cache,
)
from moorage.engines.vllm.environment import (
    OFFLINE,
    cache_variables,
    host_variables,
    ready_variables,
    variables,
    without_overridden,
)
from moorage.engines.vllm.launch_facts import by_baseline, is_clustered
from moorage.engines.vllm.notices import (
    API_KEY,
    CPU_CACHE,
    cpu_cache_refusal,
    dev_mode_refusal,
    exposure_warnings,
    ranking_warnings,
    sound_warnings,
)
from moorage.engines.vllm.options import (
    ALIASES,
    RAM_OPTIONS,
    REMOVED_OPTIONS,
    RESERVED_OPTIONS,
)
from moorage.engines.vllm.ray_cluster import (
    ray_containers,
    spanning_refusal,
    spanning_warnings,
)
from moorage.engines.vllm.recovery import remedy_for
from moorage.engines.vllm.sleep import (
    FIELD,
    WEIGHTS_IN_RAM,
    bytes_asleep,
    engine_sleep,
    sleep_flags,
    sleep_refusal,
    sleep_variables,
)
from moorage.inventory.devices import DEVICES
from moorage.memory.demand import PROCESSES
from moorage.models.profile import ModelProfile
from moorage.placement.placement import CPU
from moorage.readiness.diagnosis import LogCause
from moorage.readiness.engine_facts import read_measured
from moorage.spec import EngineName, Mode, ModelSpec, Policy


def picture_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """A warning if the share leaves no room for reading pictures, whose memory is not estimated.

    A share that the user states, or all that is free, has room: vLLM makes the cache smaller.
    """
    spec, args, need = request.spec, request.spec.engine.arguments, request.seat.need
    if need is None or need.cache is None or not request.profile.vision_heads:
        return ()
    stated = spec.memory.activation is not None or need.stated is not None
    roomy = spec.placement.policy != Policy.FITTED or args.has("--gpu-memory-utilization")
    if stated or roomy or args.switch("--language-model-only"):
        return ()
    return (
        "the claim does not count what the encoder takes while it reads a picture: if the cache"
        " becomes too small, state a larger `memory.activation`",
    )


CPU_LEAST_CACHE = 1 * GIB
CPU_CONTEXTS = 2
"""Full contexts that the key/value cache on CPU holds."""


class Vllm(Engine):
    """The vLLM OpenAI-compatible server."""

    name = EngineName.VLLM
    program = "vllm"
    default_version = "0.32.0"
    accelerator_types = frozenset(DEVICES)
    runs_on_cpu = True
    reserves_cache = True
    spans_hosts = True
    copies_share_experts = True
    modes = frozenset(Mode) - {Mode.AUTO, Mode.IMAGE_GENERATION}
    # These need vllm-omni.
    modes_of_own_images = frozenset({Mode.IMAGE_GENERATION})
    switches_of_own_images = frozenset({"--omni"})
    lists_models = True
    api_key_variable = API_KEY
    busy: ClassVar[Busy | None] = IN_FLIGHT
    shutdown_option = OPTION
    aliases = ALIASES
    features = frozenset({"speculative", "lora", "lora_updates", "extended_kv_cache", FIELD})
    updates: ClassVar[AdapterUpdates | None] = AdapterUpdates(
        load="/v1/load_lora_adapter", unload="/v1/unload_lora_adapter"
    )
    model_paths: ClassVar[tuple[str, ...]] = (
        *("/classify", "/detokenize", "/pooling", "/rerank", "/score", "/tokenize"),
        "/v2/rerank",
    )
    ram_options = RAM_OPTIONS
    argument_rules = Rules(
        title="vLLM",
        reserved=RESERVED_OPTIONS,
        removed=REMOVED_OPTIONS,
        extracted_as=EngineName.VLLM,
    )
    log_causes: ClassVar[tuple[LogCause, ...]] = LOG_CAUSES
    memory_reader = staticmethod(read_measured)
    joined_by = staticmethod(wanted_executor)
    memory_arguments = staticmethod(memory_arguments)
    ram_on_accelerators = staticmethod(ram_of_cache)
    sleep = staticmethod(engine_sleep)
    bytes_asleep = staticmethod(bytes_asleep)
    remedy = staticmethod(remedy_for)

    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """RAM of weights, the engine's processes and the key/value cache."""
        wanted = CPU_CONTEXTS * profile.context * (profile.kv_bytes_per_token or 0)
        cache = max(CPU_LEAST_CACHE, -(-wanted // GIB) * GIB)  # in whole GiB
        return int(profile.weight_bytes * 1.2) + PROCESSES + cache, cache

    def ram_asleep(self, spec: ModelSpec, profile: ModelProfile) -> int:
        """RAM of the weights, at the sleep level that keeps them."""
        return profile.weight_bytes if spec.sleep_level == WEIGHTS_IN_RAM else 0

    def vllm_versions(self, versions: Iterable[str]) -> tuple[str, ...]:
        """The same versions: the engine is vLLM itself."""
        return tuple(versions)

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """`vllm serve MODEL`, then the derived flags, and those of sleep, claim and mode."""
        reason = "the model's directory as the engine sees it"
        return (
            derived_flag(reason, self.start_of(request), "serve", request.engine_model_path),
            *derived_flags(request),
            *sleep_flags(request),
            *claimed_flags(request),
            *eager_flags(request),
        )

    def written_words(self, request: LaunchRequest) -> tuple[tuple[str, ...], str]:
        """The user's arguments; without those of the server on a follower that has none."""
        args = request.spec.engine.arguments
        return words_without_server(args) if is_headless(request) else args.words, "engine.args"

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Host, port and served name; a follower serves nothing itself."""
        return named_server_flags(request) if request.leads else ()

    def environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        """Variables for its loading, caches, hosts and adapters."""
        later = (
            *kept_cache_variables(request),
            *update_variables(request.spec.lora_updates),
            *sleep_variables(request),
            *ready_variables(request.spec.readiness.deadlines.load_seconds),
        )
        if request.seat.accelerator_type != CPU:
            return (*variables(request), *later)
        space = max(1, request.seat.cache_bytes // GIB)
        reason = "GiB of the key/value cache, as was claimed"
        return (
            *OFFLINE,
            variable("VLLM_TARGET_DEVICE", "cpu", "placed on CPU", Origin.DERIVED),
            variable(CPU_CACHE, str(space), reason, Origin.DERIVED),
            *cache_variables(request),
            *without_overridden(request, host_variables(request)),
            *later,
        )

    def fixed_variables(self, request: LaunchRequest) -> frozenset[str]:
        """Under policy `baseline` all derived variables: the user can override only defaults."""
        if not by_baseline(request.spec):
            return frozenset()
        derived = (one for one in self.environment(request) if one.origin != Origin.DEFAULT)
        return frozenset(one.name for one in derived)

    def containers(self, request: LaunchRequest) -> tuple[ContainerSpec, ...]:
        """One container, or, if Ray joins the hosts, the containers of its cluster."""
        own = self.container(request)
        return ray_containers(request, own) if is_clustered(request) else (own,)

    def refusal(self, request: LaunchRequest) -> Failure | None:
        """Refuses what this version or these hosts cannot do, and open development mode."""
        reasons = (
            *(sleep_refusal, dev_mode_refusal, spanning_refusal),
            *(cpu_cache_refusal, draft_refusal),
        )
        return next(filter(None, (reason(request) for reason in reasons)), None)

    def warnings(self, request: LaunchRequest) -> tuple[str, ...]:
        """Warnings about the cache, adapters, exposure, sound, pictures and hosts of a replica."""
        return (
            *offload_warnings(request),
            *base_warnings(request),
            *update_warnings(request, self.api_key_variable),
            *(exposure_warnings(request) if request.leads else ()),
            *sound_warnings(request),
            *picture_warnings(request),
            *ranking_warnings(request),
            *spanning_warnings(request),
        )

    def extra_mounts(self, request: LaunchRequest) -> tuple[Mount, ...]:
        """Mounts of its companions, and caches for the next start."""
        command = tuple(token for flag in self.vllm_flags(request) for token in flag.tokens)
        return (*super().extra_mounts(request), *cache_mounts(request, command))

    def vllm_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Flags of vLLM itself before the user's own, whichever program gives them to it."""
        return self.base_command(request)
