"""vLLM's arguments that the spec has fields for, and those that moorage cannot work with."""

from __future__ import annotations

from moorage.engines.schema.rules import Owned

REACHED = "moorage decides how the engine is reached, and asks it there"
ONE_SERVER = "each replica answers for itself, and moorage gives every host its part"
ASKED_PLAINLY = "moorage proves readiness over plain HTTP; what ends TLS stands in front of it"
ON_COMMAND_LINES = "secrets never stand in arguments: records, logs and processes show them"

REFUSED: dict[str, Owned] = {
    "--model": Owned(field="source", refused="the model's directory is stated already"),
    "--port": Owned(field="port", refused=REACHED),
    "--host": Owned(field="hosts[].bind", refused=REACHED),
    "--served-model-name": Owned(field="name", refused=REACHED),
    "--uds": Owned(field="port", refused=REACHED),
    "--grpc": Owned(
        field="readiness", refused="no HTTP would be spoken, and nothing could be asked"
    ),
    "--ssl-keyfile": Owned(field="hosts[].bind", refused=ASKED_PLAINLY),
    "--ssl-certfile": Owned(field="hosts[].bind", refused=ASKED_PLAINLY),
    "--api-key": Owned(field="secrets: {VLLM_API_KEY: NAME}", refused=ON_COMMAND_LINES),
    "--hf-token": Owned(field="secrets: {HF_TOKEN: NAME}", refused=ON_COMMAND_LINES),
    "--config": Owned(
        field="engine.args", refused="moorage does not read that file, and could not count with it"
    ),
    "--help": Owned(field="", refused="the engine would print its help and end"),
    **{
        name: Owned(field="placement", refused=ONE_SERVER)
        for name in (
            "--headless",
            "--nnodes",
            "--node-rank",
            "--data-parallel-rank",
            "--data-parallel-start-rank",
            "--data-parallel-external-lb",
            "--data-parallel-hybrid-lb",
            "--data-parallel-multi-port-external-lb",
        )
    },
}

FIELDS: dict[str, tuple[str, ...]] = {
    "context": ("--max-model-len",),
    "mode": ("--runner", "--convert", "--task"),
    "placement.accelerators": (
        "--tensor-parallel-size",
        "--pipeline-parallel-size",
        "--data-parallel-size",
    ),
    "placement.policy": ("--gpu-memory-utilization", "--kv-cache-memory-bytes"),
    "lora": ("--enable-lora", "--lora-modules", "--max-loras", "--max-lora-rank"),
    "speculative": ("--speculative-config", "--spec-method", "--spec-model", "--spec-tokens"),
    "extended_kv_cache": ("--kv-transfer-config",),
    "trust_remote_code": ("--trust-remote-code",),
    "revision": ("--revision",),
    "source": ("--download-dir",),
}
"""By field: arguments that say the same, and win over it."""

OWNED: dict[str, Owned] = {
    **{name: Owned(field=field) for field, names in FIELDS.items() for name in names},
    **REFUSED,
}
"""By the first name of the argument."""
