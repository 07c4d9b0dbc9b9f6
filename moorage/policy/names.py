"""Checks whether a rule's list contains a name, an image, an option or a folder."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from moorage.images.catalogue import CATALOGUE
from moorage.inventory.fleet import Fleet
from moorage.inventory.registries import DOCKER_HUB, HUB_NAMES
from moorage.spec.image_reference import parse_reference, repository
from moorage.spec.tokenize import is_option, user_tokens

SAFE = "safe"
OFFICIAL = "official"
ANY = "*"

OFFICIAL_IMAGES = tuple(sorted({repository(row.template) for row in CATALOGUE}))
"""The repositories of moorage's own image catalogue."""

_OPTIONS = """
all2all-backend api-server-count async-scheduling attention-backend block-size calculate-kv-scales
chat-template-content-format convert cpu-offload-gb cuda-graph-sizes cudagraph-capture-sizes
data-parallel-size decode-context-parallel-size default-chat-template-kwargs disable-cascade-attn
disable-chunked-mm-input disable-custom-all-reduce disable-fastapi-docs
disable-hybrid-kv-cache-manager disable-log-outputs disable-log-requests disable-log-stats
disable-sliding-window disable-uvicorn-access-log dtype enable-auto-tool-choice
enable-chunked-prefill enable-dbo enable-eplb enable-expert-parallel enable-force-include-usage
enable-hybrid-kv-cache-manager enable-log-outputs enable-log-requests enable-prefix-caching
enable-prompt-tokens-details enable-request-id-headers enable-server-load-tracking enforce-eager
exclude-tools-when-tool-choice-none expert-placement-strategy fully-sharded-loras
gpu-memory-utilization guided-decoding-backend kv-cache-dtype kv-cache-memory-bytes
kv-offloading-backend kv-offloading-size kv-sharing-fast-prefill language-model-only
limit-mm-per-prompt logprobs-mode long-prefill-token-threshold lora-dtype mamba-block-size
mamba-cache-dtype mamba-ssm-cache-dtype max-cpu-loras max-cudagraph-capture-size max-log-len
max-logprobs max-long-partial-prefills max-lora-rank max-loras max-model-len max-num-batched-tokens
max-num-partial-prefills max-num-seqs max-parallel-loading-workers max-seq-len-to-capture
mm-encoder-tp-mode mm-processor-cache-gb mm-processor-cache-type model-impl moe-backend
num-gpu-blocks-override num-redundant-experts num-scheduler-steps optimization-level
override-generation-config performance-mode pipeline-parallel-size pooler-config
prefill-context-parallel-size prefix-caching-hash-algo quantization reasoning-budget
reasoning-parser response-role return-tokens-as-token-ids rope-scaling rope-theta runner
scheduler-delay-factor scheduling-policy seed skip-mm-profiling stream-interval swap-space task
tensor-parallel-size tool-call-parser use-tqdm-on-load uvicorn-log-level
"""
SAFE_OPTIONS = frozenset(
    {*(f"--{name}" for name in _OPTIONS.split()), "-tp", "-pp", "-dp", "-ep", "-dcp", "-pcp", "-q"}
)
"""Options that only set numbers, types and switches, in full and in vLLM's short forms.

A switch with `--no-` is safe too.
"""

_VARIABLES = """
CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING DO_NOT_TRACK GLOO_SOCKET_IFNAME HF_HUB_DISABLE_TELEMETRY
HF_HUB_OFFLINE LMCACHE_CHUNK_SIZE LMCACHE_LOCAL_CPU LMCACHE_MAX_LOCAL_CPU_SIZE MKL_NUM_THREADS
NCCL_DEBUG NCCL_IB_DISABLE NCCL_IB_HCA NCCL_P2P_DISABLE NCCL_SOCKET_IFNAME OMP_NUM_THREADS
PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF RAY_LOG_TO_STDERR SAFETENSORS_FAST_GPU
TOKENIZERS_PARALLELISM TRANSFORMERS_OFFLINE VLLM_ATTENTION_BACKEND VLLM_CPU_KVCACHE_SPACE
VLLM_CPU_OMP_THREADS_BIND VLLM_ENGINE_ITERATION_TIMEOUT_S VLLM_LOGGING_LEVEL
VLLM_LOG_STATS_INTERVAL VLLM_NO_USAGE_STATS VLLM_RPC_TIMEOUT VLLM_USE_FLASHINFER_SAMPLER
VLLM_USE_V1 VLLM_WORKER_MULTIPROC_METHOD
AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN HF_TOKEN VLLM_API_KEY
"""
SAFE_VARIABLES = frozenset(_VARIABLES.split())
"""Variables that cannot make an engine run code, read files or send requests elsewhere; the last
line is for `secrets`.
"""


def has_name(patterns: Iterable[str], name: str) -> bool:
    """Whether a name matches one of the patterns; `*` stands for any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def has_variable(patterns: Sequence[str], name: str) -> bool:
    """Like `has_name`, for an environment variable; `safe` stands for `SAFE_VARIABLES`."""
    return (SAFE in patterns and name in SAFE_VARIABLES) or has_name(patterns, name)


def refused_words(patterns: Sequence[str], entries: Sequence[str]) -> Iterator[str]:
    """The words of `engine.args` that a rule does not allow.

    Options are compared as written, with `_` as `-`, so abbreviations are refused. Files of
    arguments (`@file`) and words before the first option are refused too.
    """
    if ANY in patterns:
        return
    options = False
    for word in user_tokens(entries):
        if is_option(word):
            options = True
            if not _has_option(patterns, word):
                yield word
        elif not options or word.startswith("@"):
            yield word


def _has_option(patterns: Sequence[str], word: str) -> bool:
    name = word.partition("=")[0].partition(".")[0]
    if name.startswith("--"):
        name = name.replace("_", "-")
    if has_name([pattern for pattern in patterns if pattern != SAFE], name):
        return True
    without = name.replace("--no-", "--", 1) if name.startswith("--no-") else name
    return SAFE in patterns and not {name, without}.isdisjoint(SAFE_OPTIONS)


def has_image(prefixes: Sequence[str], reference: str, fleet: Fleet) -> bool:
    """Whether an image is in one of the registries or path prefixes."""
    if ANY in prefixes:
        return True
    image = _full_name(reference)
    if OFFICIAL in prefixes:
        versions = (one for engine in fleet.engines.values() for one in engine.versions.values())
        official = (*OFFICIAL_IMAGES, *(one.image for one in versions if one.image))
        if image in map(_full_name, official):
            return True
    parts = (part for prefix in prefixes if prefix != OFFICIAL for part in _parts(prefix))
    return any(image == part or image.startswith(f"{part}/") for part in parts)


def _full_name(reference: str) -> str:
    """Registry and repository, with Docker Hub's defaults, and the host in lower case."""
    parsed = parse_reference(reference)
    registry = parsed.registry.lower()
    if registry not in HUB_NAMES:
        return f"{registry}/{parsed.path}"
    path = parsed.path if "/" in parsed.path else f"library/{parsed.path}"
    return f"{DOCKER_HUB}/{path}"


def _parts(prefix: str) -> Iterator[str]:
    """The full names of a prefix: at its own registry, else at Docker Hub."""
    first, _, rest = prefix.rstrip("/").partition("/")
    if "." in first or ":" in first or first == "localhost":
        host = DOCKER_HUB if first.lower() in HUB_NAMES else first.lower()
        yield f"{host}/{rest}".rstrip("/")
    else:
        yield f"{DOCKER_HUB}/{prefix.rstrip('/')}"
        if not rest:
            yield f"{DOCKER_HUB}/library/{first}"


def is_below(roots: Iterable[str], folder: str) -> bool:
    """Whether a folder is a root or inside one; all paths are absolute, with links resolved."""
    return any(folder == root or folder.startswith(f"{root.rstrip('/')}/") for root in roots)
