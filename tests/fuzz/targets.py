"""What is attacked: each target writes a case into a folder, and says which command reads it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import seeds
from tests.fuzz.mutations import (
    TEXTS,
    bytes_mutated,
    mutated,
    place,
    text_mutated,
    written,
)
from tests.hub.tiny import gguf

SIZES = [text for text in TEXTS if len(text) < 1000 and "\0" not in text and "\ud800" not in text]


@dataclass(frozen=True)
class Case:
    """What is run.

    Attributes:
        arguments: Of the command `moorage`, or of a chain (`tests/fuzz/chains.py`).
        answers: What the server on loopback answers, by the beginning of the path.
    """

    arguments: list[str]
    answers: Mapping[str, bytes] = field(default_factory=dict)


Target = Callable[[Random, Path], Case]


def spec(chance: Random, folder: Path) -> Case:
    """A spec, and sizes on the command line."""
    _model(folder)
    sections = list(chance.choice(seeds.SPECS).items())
    tree = {**chance.choice(seeds.SPECS), **dict(chance.sample(sections, 1))}
    place(folder / "spec.yaml", _yaml(tree, chance), chance)
    _write(folder / "fleet.yaml", chance.choice(seeds.FLEETS))
    if chance.random() < 0.05:
        size, age = chance.choices(SIZES, k=2)
        return Case(["models", "prune", f"--keep={size}", f"--older-than={age}"])
    return Case(_reading(chance))


def fleet(chance: Random, folder: Path) -> Case:
    """A fleet, beside a spec that is valid."""
    _model(folder)
    _write(folder / "spec.yaml", chance.choice(seeds.SPECS))
    if chance.random() < 0.1:
        place(folder / "fleet.yaml", _yaml(chance.choice(seeds.FLEETS), chance), chance)
        return Case(["export", "out", "--fleet", "fleet.yaml"])
    place(folder / "fleet.yaml", _yaml(chance.choice(seeds.FLEETS), chance), chance)
    return Case(_reading(chance))


def policy(chance: Random, folder: Path) -> Case:
    """A policy of the site, and a spec that is held against it."""
    _model(folder)
    (folder / "deployments").mkdir()
    place(folder / "deployments" / "policy.yaml", _yaml(seeds.POLICY, chance), chance)
    _write(folder / "spec.yaml", chance.choice(seeds.SPECS))
    _write(folder / "fleet.yaml", chance.choice(seeds.FLEETS))
    check = ["policy", "check", "spec.yaml", f"--as={chance.choice(['api', 'cli'])}"]
    more = chance.choice([[], ["--json"], ["--fleet=fleet.yaml"]])
    return Case(chance.choice([["policy", "show"], check, check, [*check, *more]]))


def _json_files(chance: Random) -> dict[str, bytes]:
    whole: dict[str, Any] = {
        "config.json": chance.choice(seeds.CONFIGS),
        "tokenizer_config.json": seeds.TOKENIZER,
        "model.safetensors.index.json": seeds.INDEX,
        "modules.json": seeds.MODULES,
        "hf_quant_config.json": seeds.MODELOPT,
    }
    chosen = chance.choice([*whole, "config.json", "config.json"])
    kept = {name: tree for name, tree in whole.items() if name in (chosen, "config.json")}
    return {
        name: _json(tree, chance) if name == chosen else json.dumps(tree).encode()
        for name, tree in kept.items()
    }


def model_folder(chance: Random, folder: Path) -> Case:
    """The JSON files of a model's folder."""
    _model(folder)
    for name, content in _json_files(chance).items():
        (folder / "model" / name).unlink(missing_ok=True)
        place(folder / "model" / name, content, chance)
    return _of_model(chance, folder)


def safetensors(chance: Random, folder: Path) -> Case:
    """The header of a weight file."""
    _model(folder)
    header = _json(seeds.TENSORS, chance)
    content = seeds.safetensors(header, chance.choice([128_000, 0]))
    if chance.random() < 0.2:
        length = chance.choice([0, 1, 2**31, 2**63, 2**64 - 1, len(header) + 1])
        content = struct.pack("<Q", length) + content[8:]
    elif chance.random() < 0.2:
        content = bytes_mutated(content, chance)
    (folder / "model" / "model.safetensors").unlink()
    place(folder / "model" / "model.safetensors", content, chance)
    return _of_model(chance, folder)


def gguf_header(chance: Random, folder: Path) -> Case:
    """The header of a GGUF file."""
    _model(folder)
    (folder / "model" / "model.safetensors").unlink()
    content = gguf({"a": (0, [8, 8]), "b": (12, [256, 4])}, 512)
    kind = chance.randrange(4)
    if kind == 0:
        counts = chance.choices([0, 1, 2**20, 2**40, 2**63, 2**64 - 1], k=2)
        content = content[:8] + struct.pack("<QQ", *counts) + content[24:]
    elif kind == 1:
        nested = struct.pack("<IQ", 9, 1) * chance.choice([2, 100, 20_000])
        key = struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9) + nested
        content = content[:16] + struct.pack("<Q", 1) + key
    else:
        content = bytes_mutated(content[:400], chance) + content[400:]
    place(folder / "model" / "model.gguf", content, chance)
    return _of_model(chance, folder)


def hub(chance: Random, folder: Path) -> Case:
    """What a hub lists, and its files."""
    answers = {f"/org/tiny/resolve/{name}": data for name, data in seeds.whole_model().items()}
    listing = _json(seeds.LISTING, chance)
    if chance.random() < 0.2:
        listing = bytes_mutated(listing, chance)
    name = chance.choice([*seeds.whole_model()])
    if chance.random() < 0.3:
        listing = json.dumps(seeds.LISTING).encode()
        answers[f"/org/tiny/resolve/{name}"] = bytes_mutated(seeds.whole_model()[name], chance)
    _write(folder / "spec.yaml", {"name": "tiny", "source": "hf://org/tiny"})
    _write(folder / "fleet.yaml", seeds.FLEETS[0])
    return Case(_reading(chance), {"/api/models/": listing, **answers})


def engine(chance: Random, _: Path) -> Case:
    """What an engine answers."""
    answer = _json(seeds.ANSWER, chance)
    metrics = text_mutated(seeds.METRICS, chance).encode(errors="surrogatepass")
    if chance.random() < 0.3:
        answer, metrics = bytes_mutated(answer, chance), bytes_mutated(metrics, chance)
    return Case(["chain", "ask"], {"/metrics": metrics, "/": answer})


TARGETS: dict[str, Target] = {
    "spec": spec,
    "fleet": fleet,
    "policy": policy,
    "config": model_folder,
    "safetensors": safetensors,
    "gguf": gguf_header,
    "hub": hub,
    "engine": engine,
}
"""By name. A new kind of file that users write gets a function above, and its line here."""


def _yaml(tree: Any, chance: Random) -> bytes:
    content = written(mutated(tree, chance), chance, aliases=True)
    if chance.random() < 0.1:
        content = bytes_mutated(content, chance)
    if chance.random() < 0.05:
        content = chance.choice(BOMBS).encode() + b"\n"
    return content


def _json(tree: Any, chance: Random) -> bytes:
    """As JSON: what YAML alone knows makes it none, and that is a case too."""
    return written(mutated(tree, chance), chance, aliases=False)


BOMBS = [
    "a: &a [x]\n" + "".join(f"b{n}: &b{n} [{'*a, ' * 99}]\n" for n in range(99)),
    "k0: &k0 {x: y}\n"
    + "".join(f"k{n}: &k{n} {{<<: [{f'*k{n - 1}, ' * 9}]}}\n" for n in range(1, 12)),
    "k0: &k0 [x]\n" + "".join(f"k{n}: &k{n} [{f'*k{n - 1}, ' * 9}]\n" for n in range(1, 12)),
    "labels: &a {? *a : b}",
    "a: &a [*a]",
    "hosts: &a {b: *a}",
    "- " * 5000,
    "? " * 5000,
    "[" * 100_000,
    "--- a\n" * 1000,
    "a: " + "x" * 1_000_000,
    "engine: {args: [" + "a, " * 60_000 + "]}",
]


def _reading(chance: Random) -> list[str]:
    """Commands that read a spec and a fleet, with what they may be given."""
    size = chance.choice(["24GiB", "h100", chance.choice(SIZES)])
    return chance.choice(
        [
            ["chain", "plan", "spec.yaml", "fleet.yaml"],
            ["chain", "plan", "spec.yaml", "fleet.yaml"],
            ["memory", "spec.yaml", "--json"],
            ["memory", "spec.yaml", f"--accelerator={size}"],
            ["apply", "spec.yaml", "--fleet", "fleet.yaml", "--dry-run", "--json"],
        ]
    )


def _of_model(chance: Random, folder: Path) -> Case:
    _write(folder / "spec.yaml", chance.choice(seeds.SPECS[:3]))
    _write(folder / "fleet.yaml", seeds.FLEETS[0])
    arguments = chance.choice(
        [
            ["chain", "plan", "spec.yaml", "fleet.yaml"],
            ["memory", "spec.yaml", "--json"],
            ["memory", "spec.yaml", "--accelerator=24GiB"],
        ]
    )
    return Case(arguments)


def _model(folder: Path) -> None:
    (folder / "model").mkdir()
    for name, content in seeds.whole_model().items():
        (folder / "model" / name).write_bytes(content)


def _write(path: Path, tree: Any) -> None:
    path.write_text(json.dumps(tree))
