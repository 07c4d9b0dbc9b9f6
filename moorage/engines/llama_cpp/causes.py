"""Patterns of llama.cpp's log that show why a start failed, the most specific first.

The wordings are those of llama.cpp in November 2026 (`llama-model-loader.cpp`, `ggml-cuda.cu`,
`server.cpp`).
"""

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import UNREADABLE_FILE, LogCause

LOG_CAUSES = (
    LogCause(
        pattern=r"unknown model architecture: '(?P<name>[^']*)'",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="This version does not know {name}: take a newer `engine.version`.",
    ),
    LogCause(
        pattern=r"unknown pre-tokenizer type: '(?P<name>[^']*)'",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="This version does not know the tokenizer {name}: take a newer"
        " `engine.version`, or a file that was converted for it.",
    ),
    LogCause(
        pattern=r"failed to load lora adapter '(?P<name>[^']*)'",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="The adapter {name} does not fit this model: take one that was made for it.",
    ),
    LogCause(
        pattern=r"cudaMalloc failed: out of memory|failed to allocate (?:CUDA|ROCm|MUSA)\d* buffer"
        r"|unable to allocate (?:CUDA|ROCm|MUSA)\d* buffer|failed to allocate buffer for kv cache",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
    ),
    LogCause(
        pattern=r"tensor '(?P<name>[^']*)' data is not within the file bounds"
        r"|(?:file|data) is corrupted or incomplete",
        cause=Cause.SOURCE_CORRUPT,
        suggestion="The file is not whole: `moorage models verify` finds out which, and the next"
        " deploy downloads it again.",
    ),
    LogCause(
        pattern=r"failed to open GGUF file '(?P<file>[^']*)' \(No such file",
        cause=Cause.SOURCE_MISSING,
        suggestion="{file} is no longer there: bring it back, or deploy the model again.",
    ),
    LogCause(
        pattern=r"failed to open GGUF file '(?P<file>[^']*)' \(Permission denied",
        cause=Cause.ENGINE_EXITED,
        suggestion=UNREADABLE_FILE,
    ),
    LogCause(
        pattern=r"error: invalid argument: (?P<flag>\S+)|error while handling argument"
        r" \"(?P<option>[^\"]+)\"",
        cause=Cause.ENGINE_BAD_ARGUMENT,
    ),
    LogCause(
        pattern=r"couldn't bind HTTP server socket|couldn't bind to",
        cause=Cause.PORT_TAKEN,
    ),
)
