"""The default size of a scheduler step.

Source: `engine/arg_utils.py`: `get_batch_defaults` and
`_set_default_max_num_seqs_and_batched_tokens_args`, for the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.memory.facts import Facts
from moorage.memory.layers import is_bidirectional
from moorage.memory.options import MemoryOptions

CPU_TOKENS, CPU_SEQS = 2048, 128
"""On CPU, for each rank."""


class Batch(Value):
    """One scheduler step.

    Attributes:
        tokens: Tokens, at most (`max_num_batched_tokens`).
        seqs: Requests, at most (`max_num_seqs`).
    """

    tokens: int
    seqs: int


def on_accelerator(options: MemoryOptions, total: int, name: str, length: int, cut: bool) -> Batch:
    """The batch on an accelerator.

    Args:
        options: What the user asks for.
        total: Bytes of the accelerator's memory.
        name: The accelerator's name; vLLM keeps batches small on an A100.
        length: `max_model_len` in tokens.
        cut: Whether long prompts are cut into steps (chunked prefill).
    """
    if total >= 160 * GIB:
        default = Batch(tokens=16_384, seqs=1024)
    elif total >= 70 * GIB and "a100" not in name.lower():
        default = Batch(tokens=8192, seqs=1024)
    else:
        default = Batch(tokens=2048, seqs=256)
    return _settled(options, default, length, cut)


def without_accelerator(options: MemoryOptions, ranks: int, length: int, cut: bool) -> Batch:
    """The batch on CPU; the arguments are those of `on_accelerator`."""
    default = Batch(tokens=CPU_TOKENS * ranks, seqs=CPU_SEQS * ranks)
    return _settled(options, default, length, cut)


def cuts_prompts(config: Mapping[str, Any], options: MemoryOptions) -> bool:
    """Whether long prompts are cut into steps.

    Source: `config/model.py:is_chunked_prefill_supported`; pooling over all tokens of a prompt is
    not distinguished, because the configuration does not mention it.

    Raises:
        Refusal: When the configuration names no architecture.
    """
    if options.chunked_prefill is not None:
        return options.chunked_prefill
    facts = Facts(config)
    return not is_bidirectional(facts) and not facts.get("is_encoder_decoder")


def _settled(options: MemoryOptions, default: Batch, length: int, cut: bool) -> Batch:
    factor = 2 if options.throughput else 1
    seqs = options.max_seqs or default.seqs * factor
    if options.batched_tokens:
        tokens = options.batched_tokens
    else:
        tokens = default.tokens * factor if cut else max(length, default.tokens * factor)
        tokens = min(tokens, seqs * length)
    return Batch(tokens=tokens, seqs=options.max_seqs or min(seqs, tokens))
