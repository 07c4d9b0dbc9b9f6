"""vLLM's options: removed options, and options that fields of the spec replace.

The version of a removal is stated only if no shipped schema shows it; schemas begin with 0.10. The
replacement of an option is stated only if the option's last schema did not name it.
Sources: vLLM's pull requests 22138, 22779 (multi-step), 21470 (`--task`), 29326 (guided decoding),
36216 (swap space), 49244 (partial prefills).
"""

from moorage.engines.schema.argument import RemovedOption, reserved_options

ALIASES: dict[str, tuple[str, ...]] = {
    "--tensor-parallel-size": ("--tp",),
    "--pipeline-parallel-size": ("--pp",),
    "--data-parallel-size": ("--dp",),
    "--speculative-config": ("--spec-method", "--spec-model", "--spec-tokens"),
}
"""Other names of options: GPUStack's names, and parts of the speculative configuration."""


REMOVED_OPTIONS: dict[str, RemovedOption] = {
    "--disable-log-requests": RemovedOption(
        instead="Requests are not logged unless `--enable-log-requests`"
    ),
    "--guided-decoding-*": RemovedOption(instead="Use `--structured-outputs-config`"),
    "--enable-reasoning": RemovedOption(
        instead="`--reasoning-parser` alone switches it on", since="0.10.0"
    ),
    "--task": RemovedOption(instead="Use `--runner` and `--convert`, or `mode` of the spec"),
    "--max-seq-len-to-capture": RemovedOption(instead="Use `--max-cudagraph-capture-size`"),
    "--rope-scaling": RemovedOption(instead="Use `--hf-overrides`"),
    "--rope-theta": RemovedOption(instead="Use `--hf-overrides`"),
    "--speculative-model": RemovedOption(
        instead="Use `speculative` of the spec, or `--speculative-config`", since="0.8.3"
    ),
    "--num-speculative-tokens": RemovedOption(
        instead="Use `speculative` of the spec, or `--speculative-config`", since="0.8.3"
    ),
    "--disable-mm-preprocessor-cache": RemovedOption(instead="Use `--mm-processor-cache-gb 0`"),
    "--num-redundant-experts": RemovedOption(instead="Use `--eplb-config`"),
    **{
        name: RemovedOption(since="0.10.0")
        for name in (
            *("--device", "--use-v2-block-manager", "--tokenizer-pool-*"),
            *("--long-lora-scaling-factors", "--qlora-adapter-name-or-path"),
        )
    },
    **{
        name: RemovedOption()
        for name in (
            *("--swap-space", "--num-scheduler-steps", "--multi-step-stream-outputs"),
            *("--max-num-partial-prefills", "--max-long-partial-prefills", "--preemption-mode"),
            *("--num-lookahead-slots", "--scheduler-delay-factor", "--enable-prompt-adapter"),
            *("--lora-extra-vocab-size", "--enable-lora-bias", "--override-neuron-config"),
            *("--disable-async-output-proc", "--calculate-kv-scales"),
            *("--disable-frontend-multiprocessing", "--disable-cascade-attn"),
        )
    },
}
"""Removed options by name; `*` matches any ending."""


ADDRESS = "moorage decides how the engine is reached, and asks it there"
ONE_SERVER = "each replica answers for itself, and moorage gives every host its part"
PLAIN_HTTP = "moorage proves readiness over plain HTTP; what ends TLS stands in front of it"
SECRETS = "secrets never stand in arguments: records, logs and processes show them"

REFUSED = (
    ("source", "the model's directory is stated already", "--model"),
    ("port", ADDRESS, "--port --uds"),
    ("hosts[].bind", ADDRESS, "--host"),
    ("name", ADDRESS, "--served-model-name"),
    ("readiness", "it serves no HTTP, so no probe could reach it", "--grpc"),
    ("hosts[].bind", PLAIN_HTTP, "--ssl-keyfile --ssl-certfile"),
    ("secrets: {VLLM_API_KEY: NAME}", SECRETS, "--api-key"),
    ("secrets: {HF_TOKEN: NAME}", SECRETS, "--hf-token"),
    ("engine.args", "moorage does not read that file, and could not count with it", "--config"),
    ("", "the engine would print its help and end", "--help"),
    ("placement", ONE_SERVER, "--headless --nnodes --node-rank --data-parallel-rank"),
    ("placement", ONE_SERVER, "--data-parallel-start-rank --data-parallel-external-lb"),
    ("placement", ONE_SERVER, "--data-parallel-hybrid-lb --data-parallel-multi-port-external-lb"),
)
"""Refused options, with the field that replaces them and the reason."""

RAM_OPTIONS = {
    "--cpu-offload-gb": "weights of each rank",
    "--offload-group-size": "layers of each rank",
}
"""Options that keep bytes in RAM which the claim counts on the accelerators."""

OVERRIDING = {
    "context": "--max-model-len",
    "mode": "--runner --convert --task",
    "placement.accelerators": "--tensor-parallel-size --pipeline-parallel-size"
    " --data-parallel-size",
    "placement.policy": "--gpu-memory-utilization --kv-cache-memory-bytes",
    "lora": "--enable-lora --lora-modules --max-loras --max-lora-rank",
    "speculative": "--speculative-config --spec-method --spec-model --spec-tokens",
    "extended_kv_cache": "--kv-transfer-config",
    "trust_remote_code": "--trust-remote-code",
    "revision": "--revision",
    "source": "--download-dir",
}
"""Options that override a field of the spec, by field."""

RESERVED_OPTIONS = reserved_options(OVERRIDING, REFUSED)
