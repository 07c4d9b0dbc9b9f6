"""vLLM's options: short names, removed ones, and those that fields of the spec stand for.

Short names as of vLLM 0.32. The version of a removal is stated only where no shipped schema shows
it: those begin with 0.10. Sources: vLLM's pull requests 22138, 22779 (multi-step), 21470
(`--task`), 29326 (guided decoding), 36216 (swap space), 49244 (partial prefills).
"""

from __future__ import annotations

from moorage.engines.schema.argument import Gone, Owned

SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "--tensor-parallel-size": ("-tp", "--tp"),
    "--pipeline-parallel-size": ("-pp", "--pp"),
    "--data-parallel-size": ("-dp", "--dp"),
    "--data-parallel-size-local": ("-dpl",),
    "--data-parallel-address": ("-dpa",),
    "--data-parallel-rpc-port": ("-dpp",),
    "--data-parallel-backend": ("-dpb",),
    "--data-parallel-start-rank": ("-dpr",),
    "--prefill-context-parallel-size": ("-pcp",),
    "--nnodes": ("-n",),
    "--node-rank": ("-r",),
    "--quantization": ("-q",),
    "--speculative-config": ("-sc", "--spec-method", "--spec-model", "--spec-tokens"),
}
"""Other names by option. `--spec-*` writes parts of the speculative configuration."""


GONE: dict[str, Gone] = {
    "--disable-log-requests": Gone(
        instead="Requests are not logged unless `--enable-log-requests`"
    ),
    "--guided-decoding-*": Gone(instead="Use `--structured-outputs-config`"),
    "--enable-reasoning": Gone(instead="`--reasoning-parser` alone switches it on", since="0.10.0"),
    "--task": Gone(instead="Use `--runner` and `--convert`, or `mode` of the spec"),
    "--cuda-graph-sizes": Gone(instead="Use `--cudagraph-capture-sizes`"),
    "--max-seq-len-to-capture": Gone(instead="Use `--max-cudagraph-capture-size`"),
    "--rope-scaling": Gone(instead="Use `--hf-overrides`"),
    "--rope-theta": Gone(instead="Use `--hf-overrides`"),
    "--speculative-model": Gone(
        instead="Use `speculative` of the spec, or `--speculative-config`", since="0.8.3"
    ),
    "--num-speculative-tokens": Gone(
        instead="Use `speculative` of the spec, or `--speculative-config`", since="0.8.3"
    ),
    "--override-pooler-config": Gone(instead="Use `--pooler-config`"),
    "--disable-mm-preprocessor-cache": Gone(instead="Use `--mm-processor-cache-gb 0`"),
    "--num-redundant-experts": Gone(instead="Use `--eplb-config`"),
    "--log-config-file": Gone(instead="Use `--logging-config.pylogging_config_file`"),
    **{
        name: Gone(since="0.10.0")
        for name in (
            "--device",
            "--use-v2-block-manager",
            "--tokenizer-pool-*",
            "--long-lora-scaling-factors",
            "--qlora-adapter-name-or-path",
        )
    },
    **{
        name: Gone()
        for name in (
            "--swap-space",
            "--num-scheduler-steps",
            "--multi-step-stream-outputs",
            "--max-num-partial-prefills",
            "--max-long-partial-prefills",
            "--preemption-mode",
            "--num-lookahead-slots",
            "--scheduler-delay-factor",
            "--enable-prompt-adapter",
            "--lora-extra-vocab-size",
            "--enable-lora-bias",
            "--override-neuron-config",
            "--disable-async-output-proc",
            "--calculate-kv-scales",
            "--disable-frontend-multiprocessing",
            "--disable-cascade-attn",
        )
    },
}
"""By option; `*` stands for any ending."""


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
