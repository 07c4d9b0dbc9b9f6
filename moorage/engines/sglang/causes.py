"""Patterns of SGLang's log that show why a start failed, the most specific first.

The wordings are those of SGLang 0.5.23; causes of the machine are shared with vLLM.
"""

from moorage.common.failures import Cause
from moorage.engines.vllm.causes import MACHINE_CAUSES
from moorage.readiness.diagnosis import LogCause

LOG_CAUSES = (
    LogCause(
        pattern=r"Loaded weights leave no GPU memory for the KV cache.*"
        r"Raise --mem-fraction-static above (?P<share>\d\.\d+)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="The weights took more than was claimed: deploy with `memory.claim` above it,"
        " or set `engine.args: [--mem-fraction-static {share}]` and check the claim.",
    ),
    LogCause(
        pattern=r"Not enough memory\. Please try to increase --mem-fraction-static",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Use more or larger accelerators, or raise `memory.claim`.",
    ),
    LogCause(
        pattern=r"Capture cuda graph failed.*out of memory|torch\.OutOfMemoryError"
        r"|CUDA out of memory",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
        suggestion="Lower `--chunked-prefill-size`, `--max-running-requests`,"
        " `--cuda-graph-max-bs-decode` or `--mem-fraction-static` in `engine.args`: a larger"
        " `memory.claim` goes to the cache, and leaves less beside it.",
    ),
    LogCause(
        pattern=r"Model architectures \[(?P<names>[^\]]*)\] are not supported",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="SGLang does not know {names}: use a newer `engine.version`, or vLLM.",
    ),
    LogCause(
        pattern=r"multi-node data-parallel replicas are not supported",
        cause=Cause.BAD_SPEC,
        suggestion="Use `replicas`, or `--attn-dp-size` for data-parallel attention.",
    ),
    *MACHINE_CAUSES,
)
