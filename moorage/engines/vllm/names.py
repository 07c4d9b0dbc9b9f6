"""Short names of vLLM's options, as of vLLM 0.32."""

from __future__ import annotations

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
