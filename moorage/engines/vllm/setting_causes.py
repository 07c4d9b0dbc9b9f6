"""Texts of vLLM about settings that it refuses, each with the field of the spec it comes from."""

from __future__ import annotations

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import LogCause

SETTING_CAUSES = (
    LogCause(
        pattern=r"World size \((?P<wanted>\d+)\) is larger than the number of available GPUs"
        r" \((?P<seen>\d+)\)",
        cause=Cause.ENGINE_NO_DEVICE,
        suggestion="The engine sees {seen} accelerators and is to use {wanted}: set"
        " `placement.accelerators`, and leave tensor and pipeline sizes out of `engine.args`.",
    ),
    LogCause(
        pattern=r"current platform (?P<platform>\w+) does not support ray",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Leave `--distributed-executor-backend ray` out of `engine.args`: vLLM runs"
        " without Ray on {platform}.",
    ),
    LogCause(
        pattern=r"Failed to import Ray",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Leave `--distributed-executor-backend ray` out of `engine.args`, or use an"
        " image that has Ray.",
    ),
    LogCause(
        pattern=r"assert self\.intermediate_tensors is not None",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Pipeline stages over hosts do not answer on CPU: use"
        " `--tensor-parallel-size` in `engine.args`.",
    ),
    LogCause(
        pattern=r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size"
        r" \((?P<size>\d+)\)",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Set `placement.accelerators` to a number that divides {heads}.",
    ),
    LogCause(
        pattern=r"max_num_batched_tokens \((?P<step>\d+)\) (is smaller than max_model_len|must be"
        r" greater than or equal to max_num_seqs) \((?P<least>\d+)\)",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Leave `--max-num-batched-tokens` out of `engine.args`, or set it to {least}"
        " or more.",
    ),
    LogCause(
        pattern=r"LoRA rank (?P<rank>\d+) is greater than max_lora_rank (?P<limit>\d+)",
        cause=Cause.ENGINE_BAD_ADAPTER,
        suggestion="Set `rank: {rank}` for the adapter under `lora`.",
    ),
    LogCause(
        pattern=r"Loading lora (?P<name>\S+) failed: No adapter found",
        cause=Cause.ENGINE_BAD_ADAPTER,
        suggestion="Check under `lora` that the directory of {name} holds adapter_config.json and"
        " its weights, on every host.",
    ),
    LogCause(
        pattern=r"(does not|is not) support(ed for)? LoRA"
        r"|While loading \S+, expected target modules",
        cause=Cause.ENGINE_BAD_ADAPTER,
        suggestion="The adapter does not go with this model: leave it out of `lora`.",
    ),
    LogCause(
        pattern=r"supplied chat template (string )?\(.*\)"
        r" (appears path-like|looks like a file path)",
        cause=Cause.ENGINE_BAD_TOKENIZER,
        suggestion="`--chat-template` in `engine.args` must be a file that the engine sees: in a"
        " container the model is under /models/NAME.",
    ),
    LogCause(
        pattern=r"invalid tool call parser: (?P<parser>\S+)|invalid reasoning parser",
        cause=Cause.ENGINE_BAD_ARGUMENT,
        suggestion="The log names the parsers that this version has: correct `engine.args`.",
    ),
    LogCause(
        pattern=r"Bfloat16 is only supported on GPUs with compute capability of at least"
        r" (?P<least>[\d.]+\d)",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Add `--dtype half` to `engine.args`: the accelerator has no bfloat16.",
    ),
    LogCause(
        pattern=r"Timed out waiting for engine(s| core processes) to",
        cause=Cause.LOAD_TIMEOUT,
        suggestion="Raise `readiness.deadlines.load_seconds`; VLLM_ENGINE_READY_TIMEOUT_S follows"
        " it, unless `engine.env` sets it.",
    ),
)
