"""Model folders that were made to do harm, and what reading one may take."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moorage.adapters.sources import resolve_all
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure
from moorage.memory.demand import memory_model
from moorage.memory.need import MemoryQuery
from moorage.memory.sizing import COMMON_SIZES, Device, smallest
from moorage.models.profile import derive_profile
from moorage.spec import ModelSpec
from tests.hub.tiny import CONFIG, model, safetensors, with_header

CPU_SECONDS = 5
"""What a case may take on a machine that does other things too; alone it is under 2."""

MEMORY_MIB = 300
"""What it may add to the imports, which take 200."""

Make = Callable[[Path], None]

DEEP = b"[" * 200_000 + b"]" * 200_000
DEEP_OBJECT = b'{"a":' * 200_000 + b"1" + b"}" * 200_000
TERABYTE = 1 << 40


def outcome(root: Path) -> dict[str, Any]:
    """What `moorage memory` finds in a folder, in a process that is killed when it takes too much.

    Returns:
        `cause` and `detail` of the failure, or neither; `cpu` in seconds, `memory` in MiB.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(60)  # it ends one that waits
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        try:
            os.write(writing, json.dumps(_judged(root)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(child, 0)
    assert report, f"it ended with status {status} and reported nothing"
    found: dict[str, Any] = json.loads(report)
    return found


def _judged(root: Path) -> dict[str, Any]:
    start = _memory("VmRSS")
    found: dict[str, Any] = {"cause": "", "detail": ""}
    began = resource.getrusage(resource.RUSAGE_SELF)
    try:
        _count(ModelSpec(name="m", source=f"file://{root}"))
    except Failure as failure:
        found = {"cause": str(failure.cause), "detail": str(failure)}
    except BaseException as error:
        found = {"cause": "crash", "detail": repr(error)[:1000]}
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return {**found, "cpu": cpu, "memory": (_memory("VmHWM") - start) / 1024}


def _count(spec: ModelSpec) -> None:
    found = resolve_all(spec, Settings())
    found.model_dump_json()
    profile = derive_profile(spec, found)
    model, query = memory_model(spec, found, profile), MemoryQuery(total=0, tokens=profile.context)
    for size in COMMON_SIZES:
        smallest(model, Device(total=size), query, profile.context)


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def folder(**files: bytes) -> Make:
    """A sane model with other files; a double underscore stands for a dot."""

    def make(root: Path) -> None:
        write(root, {**model(), **{name.replace("__", "."): files[name] for name in files}})

    return make


def write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).write_bytes(content)


def config(**changes: object) -> Make:
    return folder(config__json=json.dumps({**CONFIG, "vocab_size": 999, **changes}).encode())


def fifo(name: str) -> Make:
    return _instead(name, os.mkfifo)


def link(name: str, target: str) -> Make:
    return _instead(name, lambda path: path.symlink_to(target))


def bound_socket(name: str) -> Make:
    def make(path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.open(path.parent, os.O_RDONLY)
            listener.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)

    return _instead(name, make)


def _instead(name: str, create: Callable[[Path], None]) -> Make:
    def make(root: Path) -> None:
        write(root, model())
        (root / name).unlink(missing_ok=True)
        create(root / name)

    return make


def weights(content: bytes | Callable[[], bytes], size: int = 0) -> Make:
    """A model whose weights are these bytes, with a hole behind them up to a size."""
    return _weights("model.safetensors", content, size)


def gguf(content: bytes, size: int = 0) -> Make:
    return _weights("m.gguf", content, size)


def _weights(name: str, content: bytes | Callable[[], bytes], size: int) -> Make:
    def make(root: Path) -> None:
        written = content if isinstance(content, bytes) else content()
        write(root, {"config.json": json.dumps(CONFIG).encode(), name: written})
        os.truncate(root / name, max(size, len(written)))

    return make


def header(**entry: object) -> bytes:
    """A safetensors file with one tensor, `t`."""
    tensor = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **entry}
    return with_header(json.dumps({"t": tensor}).encode(), b"1234")


def many_tensors(number: int) -> bytes:
    """A safetensors file with so many tensors of one byte."""
    each = (
        b'"model.layers.%d.mlp.experts.%d.up_proj.weight":'
        b'{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}' % (i % 60, i // 60, i, i + 1)
        for i in range(number)
    )
    return with_header(b"{" + b",".join(each) + b"}", b"\0" * number)


def gguf_start(tensors: int, entries: int, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + rest


def gguf_array(*levels: tuple[int, int]) -> bytes:
    """A GGUF file with one entry, an array: type and number of what is in each level."""
    parts = b"".join(struct.pack("<IQ", kind, number) for kind, number in levels)
    return gguf_start(0, 1, struct.pack("<Q", 1) + b"a" + struct.pack("<I", 9) + parts)


def named(name: bytes) -> Make:
    def make(root: Path) -> None:
        write(root, model())
        os.close(os.open(os.fsencode(root) + b"/" + name, os.O_CREAT))

    return make


def many_files(root: Path) -> None:
    write(root, model())
    for number in range(10_001):
        os.link(root / "config.json", root / f"{number}.txt")


def many_folders(root: Path) -> None:
    write(root, model())
    for number in range(10_001):
        (root / str(number)).mkdir()


def deep_folders(root: Path) -> None:
    write(root, model())
    (root / "/".join(["d"] * 40)).mkdir(parents=True)


def many_headers(root: Path) -> None:
    write(root, {"config.json": json.dumps(CONFIG).encode()})
    (root / "0.safetensors").write_bytes(with_header(b" " * (20 << 20) + b"{}"))
    for number in range(1, 100):
        os.link(root / "0.safetensors", root / f"{number}.safetensors")


def large_model(root: Path) -> None:
    """700 files with 90,000 tensors, and their index, as the largest models have them."""
    write(root, {"config.json": json.dumps({**CONFIG, "vocab_size": 999}).encode()})
    weight_map = {}
    for shard in range(700):
        name = f"model-{shard:05}-of-00700.safetensors"
        tensors = {
            f"model.layers.{shard % 2}.mlp.experts.{shard * 130 + i}.up_proj.weight": ("U8", [2])
            for i in range(130)
        }
        (root / name).write_bytes(safetensors(tensors))
        weight_map.update(dict.fromkeys(tensors, name))
    index = json.dumps({"weight_map": weight_map, "metadata": {"total_size": 182_000}})
    (root / "model.safetensors.index.json").write_text(index)
