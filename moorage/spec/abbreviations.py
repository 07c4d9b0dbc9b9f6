"""Other writings of the options that decide something here, as vLLM takes them.

vLLM's parser takes an option that is cut short, as long as no other begins so, and some options
have two names. Whoever looks for `--gpu-memory-utilization` has to find `--gpu-memory-util` too:
else the engine would take more than what was claimed.
"""

from __future__ import annotations

from functools import lru_cache

SHORTEST: dict[str, str] = {
    "--api-key": "--api-k",
    "--api-server-count": "--api-s",
    "--block-size": "--b",
    "--compilation-config": "--com",
    "--cpu-offload-gb": "--cp",
    "--cudagraph-capture-sizes": "--cudag",
    "--data-parallel-address": "--data-parallel-a",
    "--data-parallel-backend": "--data-parallel-b",
    "--data-parallel-hybrid-lb": "--data-parallel-h",
    "--data-parallel-rpc-port": "--data-parallel-rp",
    "--data-parallel-size-local": "--data-parallel-size-",
    "--data-parallel-start-rank": "--data-parallel-st",
    "--decode-context-parallel-size": "--dec",
    "--device-memory-utilization": "--device-m",
    "--disable-access-log-for-endpoints": "--disable-a",
    "--disable-chunked-prefill": "--disable-chunked-p",
    "--disable-eplb": "--disable-epl",
    "--disable-expert-parallel": "--disable-ex",
    "--disable-hybrid-kv-cache-manager": "--disable-h",
    "--disable-lora": "--disable-lor",
    "--disable-prefix-caching": "--disable-pre",
    "--disable-prompt-tokens-details": "--disable-prompt-t",
    "--distributed-executor-backend": "--dist",
    "--dtype": "--dt",
    "--enable-chunked-prefill": "--enable-c",
    "--enable-eplb": "--enable-ep",
    "--enable-expert-parallel": "--enable-ex",
    "--enable-hybrid-kv-cache-manager": "--enable-hy",
    "--enable-lora": "--enable-lor",
    "--enable-prefix-caching": "--enable-pre",
    "--enable-prompt-tokens-details": "--enable-prompt-t",
    "--enforce-eager": "--enf",
    "--fully-sharded-loras": "--f",
    "--gpu-memory-utilization": "--gp",
    "--headless": "--hea",
    "--hf-overrides": "--hf-o",
    "--host": "--ho",
    "--kv-cache-dtype": "--kv-c",
    "--kv-cache-dtype-skip-layers": "--kv-cache-dtype-",
    "--kv-cache-memory-bytes": "--kv-cache-m",
    "--kv-transfer-config": "--kv-t",
    "--language-model-only": "--la",
    "--lora-modules": "--lora-m",
    "--lora-target-modules": "--lora-t",
    "--mamba-ssm-cache-dtype": "--mamba-s",
    "--master-addr": "--master-a",
    "--master-port": "--master-p",
    "--max-cudagraph-capture-size": "--max-cu",
    "--max-lora-rank": "--max-lora-",
    "--max-loras": "--max-loras",
    "--max-model-len": "--max-m",
    "--max-num-batched-tokens": "--max-num-b",
    "--max-num-seqs": "--max-num-s",
    "--nnodes": "--nn",
    "--no-disable-hybrid-kv-cache-manager": "--no-disable-h",
    "--no-enable-chunked-prefill": "--no-enable-c",
    "--no-enable-eplb": "--no-enable-ep",
    "--no-enable-expert-parallel": "--no-enable-ex",
    "--no-enable-lora": "--no-enable-lor",
    "--no-enable-prefix-caching": "--no-enable-pre",
    "--no-enable-prompt-tokens-details": "--no-enable-prompt-t",
    "--no-enforce-eager": "--no-en",
    "--no-fully-sharded-loras": "--no-f",
    "--no-language-model-only": "--no-la",
    "--no-trust-remote-code": "--no-t",
    "--node-rank": "--nod",
    "--optimization-level": "--op",
    "--performance-mode": "--pe",
    "--pipeline-parallel-size": "--pi",
    "--port": "--po",
    "--prefill-context-parallel-size": "--prefil",
    "--quantization": "--q",
    "--revision": "--rev",
    "--runner": "--ru",
    "--served-model-name": "--ser",
    "--shutdown-timeout": "--shu",
    "--spec-method": "--spec-me",
    "--spec-model": "--spec-mo",
    "--spec-tokens": "--spec-t",
    "--speculative-config": "--sp",
    "--task": "--ta",
    "--tensor-parallel-size": "--te",
    "--trust-remote-code": "--tr",
}
"""By option the shortest writing that a version takes for it (0.10 to 0.33)."""

OTHER_WRITINGS: dict[str, str] = {
    "--device-memory-utilization": "--gpu-memory-utilization",
    "--disable-chunked-prefill": "--no-enable-chunked-prefill",
    "--disable-eplb": "--no-enable-eplb",
    "--disable-expert-parallel": "--no-enable-expert-parallel",
    "--disable-lora": "--no-enable-lora",
    "--disable-prefix-caching": "--no-enable-prefix-caching",
    "--disable-prompt-tokens-details": "--no-enable-prompt-tokens-details",
    "--enable-hybrid-kv-cache-manager": "--no-disable-hybrid-kv-cache-manager",
}
"""Second names of an option, and the opposite of a switch, under the name that is looked for."""


@lru_cache(maxsize=4096)
def in_full(name: str) -> str:
    """The name under which an option is looked for; another one stays as it is.

    Args:
        name: With its dashes, without value and keys.
    """
    found = [name]
    if name not in SHORTEST and name.startswith("--"):
        known = SHORTEST.items()
        found = [full for full, least in known if _is_short_for(name, full, least)]
    full = found[0] if len(found) == 1 else name
    return OTHER_WRITINGS.get(full, full)


def _is_short_for(name: str, full: str, least: str) -> bool:
    return name.startswith(least) and full.startswith(name)
