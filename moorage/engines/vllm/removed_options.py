"""Arguments that vLLM dropped, and what takes their place.

The version is stated only where no shipped schema tells it: those begin with 0.10. Sources: vLLM's
pull requests 22138, 22779 (multi-step), 21470 (`--task`), 29326 (guided decoding), 36216 (swap
space), 49244 (partial prefills).
"""

from __future__ import annotations

from moorage.engines.schema.versions import Gone

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
