"""What `safe` and `official` stand for in a policy: lists of what is allowed, never of what is not.

A new option or variable of an engine is refused until it is listed. In these lists stands nothing
that names a file, a class, a module, a plugin, an address or another model.
"""

from __future__ import annotations

from moorage.images.catalogue import CATALOGUE
from moorage.spec.image_reference import repository

SAFE = "safe"
OFFICIAL = "official"
ANY = "*"

OFFICIAL_IMAGES = tuple(sorted({repository(row.template) for row in CATALOGUE}))
"""The repositories that moorage itself takes images from."""

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
prefill-context-parallel-size prefix-caching-hash-algo quantization reasoning-parser response-role
return-tokens-as-token-ids rope-scaling rope-theta runner scheduler-delay-factor scheduling-policy
seed skip-mm-profiling stream-interval swap-space task tensor-parallel-size tool-call-parser
use-tqdm-on-load uvicorn-log-level
"""
SAFE_OPTIONS = frozenset(
    {*(f"--{name}" for name in _OPTIONS.split()), "-tp", "-pp", "-dp", "-ep", "-dcp", "-pcp", "-q"}
)
"""Options that decide about numbers, types and switches alone, in full and in vLLM's short forms.

`--no-` in front of a switch is safe too.
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
"""Variables that make no engine run, read or ask anything else; the last line is for `secrets`."""
