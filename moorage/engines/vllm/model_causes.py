"""Texts of vLLM about the model: what it does not know, cannot read or must not fetch."""

from __future__ import annotations

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import LogCause

MODEL_CAUSES = (
    LogCause(
        pattern=r"Model architectures \[(?P<names>[^\]]*)\] (are not supported|failed)",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="vLLM does not know {names}: use a newer `engine.version`, or transformers.",
    ),
    LogCause(
        pattern=r"Unknown quantization method: (?P<method>[^.\s]+)",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="This version does not know {method}: use a newer `engine.version`, or another"
        " quantization of the model.",
    ),
    LogCause(
        pattern=r"method (?P<method>\S+) is not supported for the current GPU\."
        r" Minimum capability: (?P<least>\d+)",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="{method} needs compute capability {least}: place the model on newer"
        " accelerators, or serve another quantization.",
    ),
    LogCause(
        pattern=r"Quantization scheme is not supported for the current GPU"
        r"|(?P<method>\w+) quantization is currently not supported in",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
    ),
    LogCause(
        pattern=r"specified in the model config \((?P<own>\w+)\) does not match the quantization"
        r" method specified in the `quantization` argument",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="Leave `--quantization` out of `engine.args`: the model is {own}.",
    ),
    LogCause(
        pattern=r"Cannot find the config file for (?P<method>\w+)",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="The model is not quantized with {method}: leave `--quantization` out of"
        " `engine.args`.",
    ),
    LogCause(
        pattern=r"requires you to execute the \w+ file|`?trust_remote_code=True`? (in LLM|to"
        r" (allow|remove))",
        cause=Cause.CONFIG_UNREADABLE,
        suggestion="The model comes with its own code: set `trust_remote_code: true` if you trust"
        " it.",
    ),
    LogCause(
        pattern=r"Can't load tokenizer for|Couldn't instantiate the backend tokenizer"
        r"|Failed to load the tokenizer|(?i:unable to load vocabulary)",
        cause=Cause.ENGINE_BAD_TOKENIZER,
    ),
    LogCause(
        pattern=r"Invalid repository ID or local directory specified: '(?P<name>[^']*)'",
        cause=Cause.SOURCE_MISSING,
        suggestion="{name} is no directory that the engine sees: correct `engine.args` or"
        " `speculative`.",
    ),
    LogCause(
        pattern=r"Cannot access gated repo|GatedRepoError",
        cause=Cause.SOURCE_GATED,
    ),
    LogCause(
        pattern=r"OfflineModeIsEnabled|outgoing traffic has been disabled|Cannot reach https?://"
        r"|couldn't connect to 'https?://",
        cause=Cause.SOURCE_OFFLINE,
        suggestion="An engine has no access to the hub: name what `engine.args` asks for as a"
        " directory that it sees, not as a repository.",
    ),
)
