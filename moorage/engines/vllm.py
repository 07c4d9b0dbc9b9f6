"""vLLM: `vllm serve`, in a container or as an installed program.

Flags and environment as of vLLM 0.32.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.arguments import user_tokens
from moorage.engines.base import Engine, LaunchRequest
from moorage.failures import Cause
from moorage.launch import Flag, Variable
from moorage.models.profile import ModelProfile
from moorage.placement.parallelism import stated_parallelism
from moorage.placement.placement import CPU
from moorage.readiness.diagnosis import LogCause
from moorage.readiness.measured import Measured, read_measured
from moorage.spec import EngineName, Mode
from moorage.units import GIB, human_bytes
from moorage.values import Origin

CPU_PROCESS_BYTES = 2 * GIB
"""RAM of vLLM's own processes on CPU; measured 1.6 to 2.5 GiB with page cache."""

CPU_LEAST_CACHE = 1 * GIB
CPU_CONTEXTS = 2
"""How many full contexts the key/value cache on CPU is made for."""


class Vllm(Engine):
    """The vLLM OpenAI-compatible server."""

    name = EngineName.VLLM
    program = "vllm"
    default_version = "0.32.0"
    accelerator_types = frozenset({"cuda", "rocm"})
    runs_on_cpu = True
    reserves_cache = True
    modes = frozenset({Mode.COMPLETION, Mode.EMBEDDING, Mode.RERANKING})
    lists_models = True
    api_key_variable = "VLLM_API_KEY"
    log_causes = (
        LogCause(
            pattern=r"estimated maximum model length is (?P<length>\d+)",
            cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
            suggestion="Set `context: {length}` or lower, or give the model more memory.",
        ),
        LogCause(
            pattern=r"No available memory for the cache blocks|Cannot auto-fit max_model_len",
            cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
            suggestion="The weights leave no room for the cache: use more or larger accelerators.",
        ),
        LogCause(
            pattern=r"Free memory on device .* is less than desired GPU memory utilization",
            cause=Cause.ENGINE_ACCELERATOR_BUSY,
        ),
        LogCause(pattern=r"Error in memory profiling", cause=Cause.ENGINE_ACCELERATOR_BUSY),
        LogCause(
            pattern=r"Model architectures \[(?P<names>[^\]]*)\] (are not supported|failed)",
            cause=Cause.ENGINE_UNSUPPORTED_MODEL,
            suggestion="vLLM does not know {names}: use a newer `engine.version`, or transformers.",
        ),
        LogCause(
            pattern=r"Insufficient space in /dev/shm.*?(?P<size>\d+ MiB) required",
            cause=Cause.ENGINE_SHM_TOO_SMALL,
            suggestion="Raise `engine.shm` above {size}.",
        ),
        LogCause(
            pattern=r"No working C\+\+ compiler found",
            cause=Cause.PROGRAM_MISSING,
            suggestion="The image cannot compile: add `--enforce-eager` to `engine.args`.",
        ),
        LogCause(
            pattern=r"is less than desired CPU memory utilization",
            cause=Cause.ENGINE_OUT_OF_MEMORY,
        ),
        LogCause(pattern=r"Failed to infer device type", cause=Cause.ENGINE_NO_DEVICE),
        LogCause(
            pattern=r"World size \(\d+\) is larger than the number of available GPUs",
            cause=Cause.ENGINE_NO_DEVICE,
        ),
    )

    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """Weights, the engine's processes and the key/value cache."""
        cache = _cpu_cache(profile)
        return int(profile.weight_bytes * 1.2) + CPU_PROCESS_BYTES + cache, cache

    @property
    def memory_reader(self) -> Callable[[str], Measured | None]:
        """Reads the lines of its memory profiling."""
        return read_measured

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """`vllm serve MODEL`, then length, parallelism, memory and mode."""
        installed = request.host.program(self.name)
        program = installed.path if installed and not request.in_container else self.program
        return (
            Flag(
                tokens=(program, "serve", request.engine_model_path),
                origin=Origin.DERIVED,
                reason="the model's directory as the engine sees it",
            ),
            _context_flag(request),
            *_parallelism(request),
            *_batch(request),
            *_mode(request),
            *_trust(request),
        )

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Host, port and served name."""
        return (
            Flag(
                tokens=("--host", request.listen_address),
                origin=Origin.DERIVED,
                reason="inside the container; the host publishes it on its own address"
                if request.in_container
                else "the host's `bind`",
            ),
            Flag(
                tokens=("--port", str(request.seat.port)),
                origin=Origin.USER if request.spec.port != "auto" else Origin.DERIVED,
                reason="the port that was claimed",
            ),
            Flag(
                tokens=("--served-model-name", request.spec.name),
                origin=Origin.USER,
                reason="the spec's name",
            ),
        )

    def environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        """What vLLM should know about its surroundings."""
        always = (
            _variable("VLLM_NO_USAGE_STATS", "1", "a server does not report home"),
            _variable("HF_HUB_OFFLINE", "1", "the model is already here"),
        )
        if request.seat.accelerator_type == CPU:
            space = max(1, request.seat.cache_bytes // GIB)
            return (
                *always,
                _variable("VLLM_TARGET_DEVICE", "cpu", "placed on CPU", Origin.DERIVED),
                _variable(
                    "VLLM_CPU_KVCACHE_SPACE",
                    str(space),
                    "GiB of the key/value cache, as was claimed",
                    Origin.DERIVED,
                ),
            )
        return (
            *always,
            _variable("OMP_NUM_THREADS", "1", "more threads only contend with the workers"),
            _variable("SAFETENSORS_FAST_GPU", "1", "loads weights straight to the accelerator"),
        )


def _context_flag(request: LaunchRequest) -> Flag:
    profile, tokens = request.profile, request.seat.tokens
    length, origin, reason = profile.context, profile.context_origin, profile.context_reason
    if origin != Origin.USER and tokens and tokens < length:
        length, origin = tokens, Origin.DERIVED
        reason = f"of {profile.context} tokens, as many as the claimed memory holds"
    return Flag(tokens=("--max-model-len", str(length)), origin=origin, reason=reason)


def _parallelism(request: LaunchRequest) -> tuple[Flag, ...]:
    seat = request.seat
    if not seat.accelerators:
        return ()
    flags = []
    if not stated_parallelism(user_tokens(request.spec.engine.args)):
        sizes = {"--tensor-parallel-size": seat.tensor, "--pipeline-parallel-size": seat.pipeline}
        reason = f"{len(seat.accelerators)} accelerators on this host"
        flags = [
            Flag(tokens=(name, str(size)), origin=Origin.DERIVED, reason=reason)
            for name, size in sizes.items()
            if size > 1
        ]
    share = Flag(
        tokens=("--gpu-memory-utilization", f"{seat.utilization:g}"),
        origin=Origin.DERIVED,
        reason="the share of each accelerator that was claimed",
    )
    return (*flags, share)


def _batch(request: LaunchRequest) -> tuple[Flag, ...]:
    """The step that the claim was worked out for; without it another version may take another."""
    need = request.seat.need
    if need is None or need.cache is None:
        return ()
    reason = f"as counted for the claim of {human_bytes(need.inside)}"
    sizes = {
        "--max-num-batched-tokens": need.batch.tokens,
        "--max-num-seqs": need.batch.seqs,
    }
    return tuple(
        Flag(tokens=(name, str(size)), origin=Origin.DERIVED, reason=reason)
        for name, size in sizes.items()
    )


def _mode(request: LaunchRequest) -> tuple[Flag, ...]:
    if request.profile.mode == Mode.COMPLETION:
        return ()
    reason = f"mode {request.profile.mode}"
    return (
        Flag(tokens=("--runner", "pooling"), origin=request.profile.mode_origin, reason=reason),
    )


def _trust(request: LaunchRequest) -> tuple[Flag, ...]:
    if not request.spec.trust_remote_code:
        return ()
    return (Flag(tokens=("--trust-remote-code",), origin=Origin.USER, reason="trust_remote_code"),)


def _cpu_cache(profile: ModelProfile) -> int:
    """Bytes of the key/value cache on CPU, in whole GiB."""
    wanted = CPU_CONTEXTS * profile.context * (profile.kv_bytes_per_token or 0)
    return max(CPU_LEAST_CACHE, -(-wanted // GIB) * GIB)


def _variable(name: str, value: str, reason: str, origin: Origin = Origin.DEFAULT) -> Variable:
    return Variable(name=name, value=value, origin=origin, reason=reason)
