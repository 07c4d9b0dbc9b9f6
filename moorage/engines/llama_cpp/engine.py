"""llama.cpp's server: GGUF models on CPU and on accelerators.

As a process it is the server in the xllamacpp wheel, which has no command line:
`moorage.adapters.engines.llama_server` adds llama-server's. Containers run llama-server itself.
"""

from collections.abc import Iterator

from moorage.common.failures import Failure
from moorage.common.units import MIB
from moorage.engines.base import Busy, Engine
from moorage.engines.command_line import port_flag
from moorage.engines.flags import Flag, default_flag, derived_flag, spec_flag
from moorage.engines.llama_cpp.causes import LOG_CAUSES
from moorage.engines.llama_cpp.companions import (
    adapter_flags,
    adapter_refusal,
    adapter_warnings,
    draft_flags,
    draft_refusal,
)
from moorage.engines.llama_cpp.options import (
    ALIASES,
    RAM_OPTIONS,
    RULES,
    RULES_OF_WHEEL,
    build_of,
)
from moorage.engines.request import LaunchRequest
from moorage.engines.schema.argument import Rules
from moorage.engines.seat import cores
from moorage.memory.gguf import (
    BATCH,
    CELLS,
    CHECKPOINTS,
    PROCESS,
    PROMPT_CACHE,
    prompt_cache,
)
from moorage.memory.stated_options import wanted_concurrency
from moorage.models.files import GGUF, model_file, projector_file
from moorage.models.gguf_config import lacks_pooling
from moorage.models.profile import ModelProfile
from moorage.placement.placement import CPU
from moorage.spec import EngineName, Mode, ModelSpec

API_KEY = "LLAMA_API_KEY"
PROGRAM_IN_IMAGE = "/app/llama-server"
"""Path of the program in the official images."""

MODES = {Mode.EMBEDDING: "--embedding", Mode.RERANKING: "--reranking"}
"""Options that switch the server to other modes than text."""


class LlamaCpp(Engine):
    """The OpenAI-compatible server of llama.cpp."""

    name = EngineName.LLAMA_CPP
    program = "moorage-llama-server"
    default_version = "11549"
    formats = frozenset({GGUF})
    accelerator_types = frozenset({"cuda", "rocm", "musa"})
    runs_on_cpu = True
    reserves_cache = True
    modes = frozenset({Mode.COMPLETION, Mode.EMBEDDING, Mode.RERANKING})
    lists_models = True
    api_key_variable = API_KEY
    busy = Busy(
        path="/metrics",
        running="llamacpp:requests_processing",
        waiting="llamacpp:requests_deferred",
        # It counts tokens only when a request ends.
        progress=("llamacpp:tokens_predicted_total", "llamacpp:prompt_tokens_total"),
        guarded=True,
    )
    aliases = ALIASES
    argument_rules = RULES
    planned_by_version = True
    ram_options = RAM_OPTIONS
    adapter_format = GGUF
    divides_heads = False
    offloads_layers = True
    features = frozenset(
        {"lora", "placement.partial_offload", "speculative", "speculative.min_acceptance"}
    )
    model_paths = ("/detokenize", "/rerank", "/tokenize")
    log_causes = LOG_CAUSES

    def adapter_name(self, model: str, adapter: str) -> str:
        """Empty: a request lists adapters in its field `lora`."""
        return ""

    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """RAM of weights, cache with two-byte elements, prompt cache and server."""
        cache = profile.context * (profile.kv_bytes_per_token or 0)
        return int(profile.weight_bytes * 1.2) + cache + PROMPT_CACHE + PROCESS, cache

    def ram_on_accelerators(self, spec: ModelSpec, accelerator_type: str, claimed: int) -> int:
        """RAM of the server and its prompt cache."""
        return prompt_cache(spec.engine.arguments) + PROCESS

    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The program and the model's file, then the flags derived from spec, seat and mode."""
        program = PROGRAM_IN_IMAGE if request.in_container else self.start_of(request)
        model = f"{request.engine_model_path}/{model_file(request.model.files)}"
        return (
            derived_flag("the first file of the model", program, "--model", model),
            *(flag for flag in _derived(request) if _knows(request, flag)),
        )

    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Host, port and served name."""
        return (
            derived_flag("where the host lets it listen", "--host", request.listen_address),
            port_flag(request),
            spec_flag("the spec's name", "--alias", request.spec.name),
        )

    def rules(self, *, in_container: bool) -> Rules:
        """The rules; the server in the wheel, run as a process, has only some of the options."""
        return RULES if in_container else RULES_OF_WHEEL

    def argument_version(self, version: str) -> str:
        """The number of the build."""
        return build_of(version)

    def refusal(self, request: LaunchRequest) -> Failure | None:
        """Refuses drafts and adapters that llama.cpp cannot use."""
        return draft_refusal(request) or adapter_refusal(request)

    def warnings(self, request: LaunchRequest) -> tuple[str, ...]:
        """Warnings about adapters, and about options that the build lacks."""
        unknown = [flag for flag in _derived(request) if not _knows(request, flag)]
        return (
            *adapter_warnings(request),
            *(
                f"{flag.tokens[0]} is left out, the build does not know it: {flag.reason}"
                for flag in unknown
            ),
        )


def _derived(request: LaunchRequest) -> tuple[Flag, ...]:
    """The arguments that follow from spec, seat and mode."""
    return (
        *_projector(request),
        *_context(request),
        *_layers(request),
        *_threads(request),
        *draft_flags(request),
        *adapter_flags(request),
        *_mode(request.profile),
        *_batch(request),
        derived_flag("its share of the claim", "--cache-ram", str(PROMPT_CACHE // MIB)),
        derived_flag("of each slot, as claimed", "--ctx-checkpoints", str(CHECKPOINTS)),
        default_flag("requests in flight and tokens are read there", "--metrics"),
        default_flag("no page of a foreign site may ask the model", "--cors-origins", "localhost"),
        default_flag("sizes in the log are kept with the release", "--verbosity", "4"),
        default_flag("the model is already here", "--offline"),
    )


def _knows(request: LaunchRequest, flag: Flag) -> bool:
    """Whether the build has the option; true if its options are unknown."""
    return request.arguments is None or flag.tokens[0] in request.arguments.options


def _projector(request: LaunchRequest) -> tuple[Flag, ...]:
    name = projector_file(request.model.files)
    if not name:
        return ()
    path = f"{request.engine_model_path}/{name}"
    return (derived_flag("turns pictures and sound into embeddings", "--mmproj", path),)


def _context(request: LaunchRequest) -> tuple[Flag, ...]:
    """The total context of all slots, each rounded up as in the server."""
    seat = request.seat
    tokens, need = seat.tokens or request.profile.context, seat.cpu_need or seat.need
    slots = need.concurrency if need else wanted_concurrency(request.spec, tokens)
    cells = -(-tokens // CELLS) * CELLS
    reason = f"{slots} x {tokens} tokens, in steps of {CELLS}"
    return (
        derived_flag(reason, "--ctx-size", str(cells * slots)),
        derived_flag("requests of full context at once", "--parallel", str(slots)),
    )


def _layers(request: LaunchRequest) -> tuple[Flag, ...]:
    seat = request.seat
    if seat.accelerator_type == CPU:
        return (derived_flag("placed on CPU", "--n-gpu-layers", "0"),)
    why, layers = "the claim holds the whole model", 999
    if seat.layers:
        why = f"{seat.layers} of {request.profile.layers} layers fit, and the output counts as one"
        layers = seat.layers + 1
    shares = ",".join("1" for _ in seat.accelerators)
    equal = "equal numbers of layers, as claimed, whatever is free"
    return (
        derived_flag(why, "--n-gpu-layers", str(layers)),
        derived_flag("the claim decides, not what is free", "--fit", "off"),
        *[derived_flag(equal, "--tensor-split", shares)] * (len(seat.accelerators) > 1),
    )


def _threads(request: LaunchRequest) -> tuple[Flag, ...]:
    number = cores(request)
    why = "the cores that were claimed" if request.seat.cores else "engine.container.cores"
    return (derived_flag(why, "--threads", str(number)),) if number else ()


def _mode(profile: ModelProfile) -> Iterator[Flag]:
    if option := MODES.get(profile.mode):
        yield derived_flag(f"the model is served for {profile.mode}", option)
    if _needs_pooling(profile):
        reason = "the header says no way to make one vector of a text; vLLM takes this one, too"
        yield derived_flag(reason, "--pooling", "last")


def _batch(request: LaunchRequest) -> Iterator[Flag]:
    """Room in a batch for a whole input, unless the claim counts on the usual batch."""
    profile, seat = request.profile, request.seat
    need = seat.cpu_need or seat.need
    usual = BATCH if _needs_pooling(profile) else seat.tokens or profile.context
    size = need.batch.tokens if need else usual
    if profile.mode in MODES and size > BATCH:
        reason = "an input is computed at once, so a batch holds a whole context"
        for option in ("--batch-size", "--ubatch-size"):
            yield derived_flag(reason, option, str(size))


def _needs_pooling(profile: ModelProfile) -> bool:
    return profile.mode == Mode.EMBEDDING and lacks_pooling(profile.architectures)
