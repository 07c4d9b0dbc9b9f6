"""Patterns of Triton's log that show why a start failed, the most specific first.

The wordings are those of Triton 2.51 and its vLLM backend; the engine adds vLLM's own causes.
"""

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import LogCause

LOG_CAUSES = (
    LogCause(
        pattern=r"requires you to execute the \w+ file|`?trust_remote_code=True`? (in LLM|to"
        r" (allow|remove))",
        cause=Cause.CONFIG_UNREADABLE,
        suggestion="The model comes with its own code: set `trust_remote_code: true` if you trust"
        " it. The OpenAI frontend runs none even so: leave `engine.triton.openai` out, or name"
        " another `--tokenizer` in `engine.args`.",
    ),
    LogCause(
        pattern=r"can't open file '\S*/openai_frontend/main\.py'",
        cause=Cause.PROGRAM_MISSING,
        suggestion="The image has no OpenAI frontend: take NVIDIA's, or leave out"
        " `engine.triton.openai`.",
    ),
    LogCause(
        pattern=r"__init__\(\) got an unexpected keyword argument '(?P<option>[^']*)'",
        cause=Cause.ENGINE_BAD_ARGUMENT,
        suggestion="The vLLM of this release does not know {option} of model.json: leave it out,"
        " or take another `engine.version`.",
    ),
    LogCause(
        pattern=r"please specify KIND_MODEL",
        cause=Cause.ENGINE_BAD_ARGUMENT,
        suggestion="Set `engine.triton.instance: KIND_MODEL`.",
    ),
    LogCause(
        pattern=r"unable to find backend library for backend '(?P<name>[^']*)'"
        r"|Unable to find backend '(?P<other>[^']*)'",
        cause=Cause.PROGRAM_MISSING,
        suggestion="The image has no vLLM backend: take one whose tag ends in `vllm-python-py3`.",
    ),
    LogCause(
        pattern=r"Triton backend cannot find (?P<path>\S+)|'model\.json' containing",
        cause=Cause.ENGINE_BAD_ARGUMENT,
    ),
    LogCause(
        pattern=r"unrecognized option '(?P<flag>[^']*)'",
        cause=Cause.ENGINE_BAD_ARGUMENT,
        suggestion="This release of Triton does not know {flag}: leave it out of"
        " `engine.triton.server_args`, or take a newer `engine.version`.",
    ),
    LogCause(
        pattern=r"Stub process .* is not healthy|failed to start stub process",
        cause=Cause.ENGINE_EXITED,
        suggestion="The backend's process died; the lines before it say why. Out of shared memory"
        " it dies like this too: raise `engine.shm`.",
    ),
)
