"""Write a model for chats with llama.cpp: one GGUF file of 0.5 MB, random weights, byte tokens.

    python scripts/make_demo_gguf.py OUT_FILE

It needs only the standard library, so that the demo and the tutorial install nothing else.
"""

import random
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, count
from math import prod
from pathlib import Path

Value = str | int | float | Sequence[str] | Sequence[int] | Sequence[float]
Tensor = tuple[int, Sequence[int], int]
"""GGML's type, sizes with the fastest-varying one first, and offset in the data."""

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = range(4, 10)
NUMBERS = {bool: (BOOL, "?"), int: (UINT32, "I"), float: (FLOAT32, "f")}
"""GGUF's type of a number in the metadata, and its format character in `struct`."""

F32 = 0
"""GGML's type of all tensors."""

NORMAL, CONTROL = 1, 3
ALIGNMENT = 32

EMBEDDING, LAYERS, HEADS, KV_HEADS, FEED_FORWARD = 64, 2, 2, 1, 128
CONTEXT = 2048
SPECIALS = ("<s>", "</s>")
BEGIN, END = 256, 257
VOCABULARY = 256 + len(SPECIALS)
PRINTABLE = range(33, 127)
CHAT_TEMPLATE = (
    "{%- for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}"
    "{%- endfor %}{{ 'assistant: ' }}"
)


def main() -> None:
    out = Path(sys.argv[1])
    rows = list(model(random.Random(0)))
    data = [struct.pack(f"<{len(numbers)}f", *numbers) for _, _, numbers in rows]
    offsets = accumulate(map(len, data), initial=0)
    tensors = {
        name: (F32, shape, offset) for (name, shape, _), offset in zip(rows, offsets, strict=False)
    }
    start = header(metadata(), tensors)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(b"".join([start, b"\0" * (-len(start) % ALIGNMENT), *data]))
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


def metadata() -> dict[str, Value]:
    """Sizes and tokenizer of the model."""
    return {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.context_length": CONTEXT,
        "llama.embedding_length": EMBEDDING,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": FEED_FORWARD,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [*alphabet(), *SPECIALS],
        "tokenizer.ggml.token_type": [NORMAL] * 256 + [CONTROL] * len(SPECIALS),
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.bos_token_id": BEGIN,
        "tokenizer.ggml.eos_token_id": END,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def alphabet() -> list[str]:
    """The character for each byte in a byte-level BPE: visible bytes represent themselves."""
    visible = {*PRINTABLE, *range(161, 173), *range(174, 256)}
    others = count(256)
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


def model(source: random.Random) -> Iterator[tuple[str, Sequence[int], list[float]]]:
    """Name, sizes and numbers of each tensor of a Llama model."""

    def weights(name: str, *shape: int) -> tuple[str, Sequence[int], list[float]]:
        return f"{name}.weight", shape, [source.gauss(0, 0.2) for _ in range(prod(shape))]

    def norm(name: str) -> tuple[str, Sequence[int], list[float]]:
        return f"{name}.weight", (EMBEDDING,), [1.0] * EMBEDDING

    kv = EMBEDDING // HEADS * KV_HEADS
    yield weights("token_embd", EMBEDDING, VOCABULARY)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        yield norm(f"{at}.attn_norm")
        yield weights(f"{at}.attn_q", EMBEDDING, EMBEDDING)
        yield weights(f"{at}.attn_k", EMBEDDING, kv)
        yield weights(f"{at}.attn_v", EMBEDDING, kv)
        yield weights(f"{at}.attn_output", EMBEDDING, EMBEDDING)
        yield norm(f"{at}.ffn_norm")
        yield weights(f"{at}.ffn_gate", EMBEDDING, FEED_FORWARD)
        yield weights(f"{at}.ffn_up", EMBEDDING, FEED_FORWARD)
        yield weights(f"{at}.ffn_down", FEED_FORWARD, EMBEDDING)
    yield norm("output_norm")
    name, shape, head = weights("output", EMBEDDING, VOCABULARY)
    # A logit of zero is never the largest: greedy text is printable and does not end early.
    yield name, shape, [one if at // EMBEDDING in PRINTABLE else 0.0 for at, one in enumerate(head)]


def header(metadata: Mapping[str, Value], tensors: Mapping[str, Tensor]) -> bytes:
    """A GGUF file up to its data, which begins at the next multiple of `ALIGNMENT`."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        kind, packed = typed(value)
        parts += [text(key), struct.pack("<I", kind), packed]
    for name, (kind, shape, offset) in tensors.items():
        row = struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        parts += [text(name), row]
    return b"".join(parts)


def typed(value: Value) -> tuple[int, bytes]:
    """GGUF's type of a value, and its bytes; an empty array counts as one of strings."""
    if isinstance(value, str):
        return STRING, text(value)
    if isinstance(value, Sequence):
        items = [typed(item) for item in value]
        kind = items[0][0] if items else STRING
        kind = INT32 if kind == UINT32 else kind  # as llama.cpp wants token types: the same bytes
        return ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(part for _, part in items)
    kind, letter = NUMBERS[type(value)]
    return kind, struct.pack(f"<{letter}", value)


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


if __name__ == "__main__":
    main()
