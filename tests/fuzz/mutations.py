"""Changing what is valid until it is not: trees of values, texts and bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

Tree = Any
Step = tuple[Any, Any]
"""A list or mapping of a tree, and a key of it."""


class Raw(str):
    """Text that is written as it is, where a value stands."""

    __slots__ = ()


NUMBERS: list[Tree] = [
    *(0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**30, 1.5, -0.0, 1e308, True),
    *map(Raw, ("9" * 400, "9" * 5000, "-" + "9" * 80, "1e400", "-1e999", "0x" + "f" * 3000)),
    *map(Raw, (".inf", ".nan", "NaN", "Infinity", "1_0", "-_", "0o17", "1e-400", "5e-324")),
]
TEXTS = [
    *("", " ", "x" * 300, "x" * 40_000, "../" * 20, "-x", "--help", "auto", "null", "~", "<<"),
    *("16,5GiB", "127.0.0.1", "80 GiB please", "16GiB;rm", "1e400GiB", "9" * 400 + "GiB", "-1GiB"),
    *("a\0b", "a\x1b[2Jb", "a\u202eb", "\ud800", "a\nb", "a\r\nb", "\ufeff", "\u2028", "\u0661"),
    *(
        "{{model_path}}",
        "{{" * 500,
        "%s%n",
        "${HOME}",
        "$(id)",
        "`id`",
        "'",
        '"',
        "\\",
        "\x1f0\x1f",
    ),
    *("[" * 3000, '{"a":' * 3000, "(" * 5000, "(a+)+$", "hf://" + "a/" * 200, "file:///etc"),
    *("file:///dev", "file:///proc/self", "s3://a", "http://[::1", "ssh://\u00e9", "1" * 63 + "."),
]
OTHERS: list[Tree] = [None, [], {}, [[]], {"": None}, [None] * 50, {"a": {"b": {"c": []}}}]
WORDS = [
    *("auto", "vllm", "transformers", "custom", "docker", "process", "native", "ray", "fitted"),
    *("whole", "baseline", "spread", "binpack", "embedding", "reranking", "cuda", "rocm", "cann"),
    *("0", "1KiB", "1.5 GiB", "64GiB", "1PiB", "gpu-1", "gpu-1:cuda:1", "0.18.0", "fp8", "yarn"),
    *("float16", "full_attention", "sliding_attention", "mtp", "eagle3", "hf://o/a", "F8_E4M3"),
]
OPTIONS = [
    *("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "--data-parallel-size", "-dp"),
    *("--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--block-size"),
    *("--kv-cache-memory-bytes", "--kv-cache-dtype", "--gpu-memory-utilization", "--swap-space"),
    *("--cudagraph-capture-sizes", "--hf-overrides", "--speculative-config", "--dtype"),
    *("--enable-expert-parallel", "--enable-lora", "--max-loras", "--max-lora-rank", "--quant"),
    *("--cpu-offload-gb", "--compilation-config.level", "-O3", "--nnodes", "--unknown", "--runner"),
]
TAGS = ["!!python/object:os.system x", "!!binary eA==", "!!set {a}", "!x y", "*unknown", "&a *a"]


def steps(tree: Tree) -> list[Step]:
    """Every place of a tree."""
    found: list[Step] = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def mutated(tree: Tree, chance: Random) -> Tree:
    """A copy of a tree with some changes: half of the copies are such as people might write."""
    tree = deepcopy(tree)
    wild = chance.choice([0, 0, 0, 1, 1, 3])
    for change in [_mildly] * chance.randint(not wild, 4) + chance.choices(CHANGES, k=wild):
        if places := steps(tree):
            holder, key = chance.choice(places)
            change(holder, key, chance)
    return tree


def _mildly(holder: Any, key: Any, chance: Random) -> None:
    old = holder[key]
    if isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int | float):
        near = [*range(9), 64, 1000, 4096, 2**20, 2**31, 2**40, 2**62, 0.5, old * 2, -old]
        holder[key] = chance.choice(near)
    elif isinstance(old, str) and "--" in old:
        value = chance.choice(["", *WORDS, *map(str, range(4)), "64k", "0.5", "{}", "[1]"])
        holder[key] = f"{chance.choice(OPTIONS)} {value}".strip()
    elif isinstance(old, str) and chance.random() < 0.3:  # most words are not any word
        holder[key] = chance.choice([old.upper(), f"{old}-2", old[:-1], *WORDS, *WORDS])
    elif isinstance(old, list):
        holder[key] = chance.choice([old * 2, old[:1], old[::-1], []])
    elif isinstance(old, dict) and old:
        del old[chance.choice(list(old))]


def _replace(holder: Any, key: Any, chance: Random) -> None:
    holder[key] = deepcopy(chance.choice([*NUMBERS, *TEXTS, *OTHERS, *OTHERS]))


def _same_kind(holder: Any, key: Any, chance: Random) -> None:
    old = holder[key]
    if isinstance(old, str) and not isinstance(old, Raw):
        holder[key] = text_mutated(old, chance)
    elif isinstance(old, int | float):
        holder[key] = chance.choice(NUMBERS)
    else:
        _replace(holder, key, chance)


def _tag(holder: Any, key: Any, chance: Random) -> None:
    holder[key] = Raw(chance.choice(TAGS))


def _delete(holder: Any, key: Any, _: Random) -> None:
    del holder[key]


def _rename(holder: Any, key: Any, chance: Random) -> None:
    if isinstance(holder, dict):
        holder[chance.choice([text_mutated(str(key), chance), *TEXTS])] = holder.pop(key)


def _nest(holder: Any, key: Any, chance: Random) -> None:
    depth = chance.choice([1, 10, 40, 300])
    opening, closing = chance.choice([("[", "]"), ('{"a": ', "}"), ("{? ", "}")])
    if depth == 1:
        holder[key] = [holder[key]]
    else:
        holder[key] = Raw(opening * depth + "1" + closing * depth)


def _many(holder: Any, key: Any, chance: Random) -> None:
    count = chance.choice([2, 100, 1001, 3000, 60_000])
    written = json.dumps(holder[key], default=str)[: 200_000 // count + 1]
    one = written if chance.random() < 0.5 else chance.choice(["1", '"x"', '"--a b"', "[]", "{}"])
    if chance.random() < 0.5:
        holder[key] = Raw("[" + ",".join([one] * count) + "]")
    else:
        holder[key] = Raw("{" + ",".join(f'"k{at}": {one}' for at in range(count)) + "}")


def _move(holder: Any, key: Any, chance: Random) -> None:
    if isinstance(holder, dict):
        holder[chance.choice(list(holder))] = deepcopy(holder[key])


CHANGES: list[Callable[[Any, Any, Random], None]] = [
    *(_replace, _replace, _same_kind, _same_kind, _same_kind),
    *(_tag, _delete, _rename, _nest, _many, _move),
]


def text_mutated(text: str, chance: Random) -> str:
    """A text with a change."""
    at = chance.randint(0, len(text))
    more = chance.choice([*TEXTS, chr(chance.randrange(0x250)), chr(chance.randrange(0x110000))])
    return chance.choice([text[:at], text[:at] + more + text[at:], text[at:], text * 3, more])


def bytes_mutated(data: bytes, chance: Random) -> bytes:
    """Bytes with some changes: flipped bits, cut, doubled, overwritten."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(changed)) if changed else 0
        kind = chance.randrange(6)
        if kind == 0 and changed:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[at:]
        elif kind == 2:
            changed[at:at] = chance.randbytes(chance.choice([1, 8, 100]))
        elif kind == 3:
            changed[at : at + 8] = chance.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
        elif kind == 4:
            changed[at:at] = changed[at : at + 200] * chance.choice([1, 50])
        else:
            changed[at:at] = chance.choice([b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\x1b["])
    return bytes(changed)


def written(tree: Tree, chance: Random, *, aliases: bool) -> bytes:
    """A tree as JSON; some keys twice.

    Args:
        tree: What is written.
        chance: Decides about keys and aliases.
        aliases: Whether YAML will read it: some values then are aliases of others.
    """
    writer = _Writer(chance, aliases)
    return "".join(writer.pieces(tree, 0)).encode(errors="surrogatepass")


class _Writer:
    def __init__(self, chance: Random, aliases: bool) -> None:
        self._chance, self._aliases, self._anchors = chance, aliases, 0

    def pieces(self, tree: Tree, depth: int) -> Iterator[str]:
        if self._aliases and self._chance.random() < 0.01:
            if self._anchors and self._chance.random() < 0.7:
                yield f"*a{self._chance.randrange(self._anchors)} "
                return
            self._anchors += 1
            yield f"&a{self._anchors - 1} "
        if isinstance(tree, Raw) or depth > 200:
            yield str(tree)[:300_000]
        elif isinstance(tree, dict):
            yield from self._mapping(tree, depth)
        elif isinstance(tree, list):
            yield "["
            for at, value in enumerate(tree):
                yield ", " * bool(at)
                yield from self.pieces(value, depth + 1)
            yield "]"
        else:
            yield json.dumps(tree)

    def _mapping(self, tree: dict[str, Tree], depth: int) -> Iterator[str]:
        yield "{"
        comma = ""
        for key, value in tree.items():
            for _ in range(2 if self._chance.random() < 0.003 else 1):
                yield f"{comma}{json.dumps(str(key))}: "
                yield from self.pieces(value, depth + 1)
                comma = ", "
        if self._aliases and self._anchors and self._chance.random() < 0.01:
            yield f"{comma}<<: *a{self._chance.randrange(self._anchors)} "
        yield "}"


def place(path: Path, content: bytes, chance: Random) -> None:
    """Write a file; now and then something else lies there."""
    kind = chance.randrange(60)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(
            chance.choice(["/dev/zero", "/dev/stdin", "/proc/self/mem", path.name, ".."])
        )
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        path.write_bytes(content)
        os.truncate(path, 1 << chance.choice([20, 30, 40]))
    elif kind == 4:
        path.write_bytes(bytes_mutated(content, chance) * chance.choice([1, 1000]))
    else:
        path.write_bytes(content)
