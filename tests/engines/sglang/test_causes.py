"""Lines of SGLang's log that show why it did not start."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause
from moorage.engines.registry import ENGINES
from moorage.readiness.diagnosis import diagnose
from moorage.spec import EngineName

NO_ROOM = (
    "ValueError: Loaded weights leave no GPU memory for the KV cache under"
    " --mem-fraction-static=0.2. Raise --mem-fraction-static above 0.412 (minimum viable = 1 -"
    " available/pre = 0.4113). If using speculative decoding, draft weights are now counted."
)
NO_TOKENS = (
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value:"
    " mem_fraction_static=0.1"
)
GRAPHS = "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB."
UNKNOWN = (
    "ValueError: Model architectures ['MysteryForCausalLM'] are not supported for now. Supported"
    " architectures: dict_keys(['LlamaForCausalLM'])"
)
COPIES = (
    "AssertionError: multi-node data-parallel replicas are not supported; use attention DP"
    " (--attn-dp-size) across nodes"
)


@pytest.mark.parametrize(
    ("line", "cause", "advice"),
    [
        (NO_ROOM, Cause.ENGINE_KV_CACHE_TOO_SMALL, "--mem-fraction-static 0.412"),
        (NO_TOKENS, Cause.ENGINE_KV_CACHE_TOO_SMALL, "raise `memory.claim`"),
        (GRAPHS, Cause.ENGINE_OUT_OF_MEMORY, "Lower `--chunked-prefill-size`"),
        (UNKNOWN, Cause.ENGINE_UNSUPPORTED_MODEL, "does not know 'MysteryForCausalLM'"),
        (COPIES, Cause.BAD_SPEC, "--attn-dp-size"),
    ],
)
def test_the_log_gives_the_cause_away(line: str, cause: Cause, advice: str) -> None:
    log = f"[2026-11-23 20:00:00 TP0] Scheduler hit an exception: Traceback\n{line}\n"

    causes = ENGINES[EngineName.SGLANG].log_causes
    failure = diagnose(log, causes, Cause.ENGINE_EXITED, "tiny: exit code 1")

    assert failure.cause == cause
    assert advice in (failure.suggestion or "")
