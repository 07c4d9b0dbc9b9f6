from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines import schema_extraction
from moorage.adapters.engines.schema_extraction import (
    EXTRACT_SCRIPT,
    schema_of_image,
    schema_of_installed,
)
from moorage.adapters.engines.schema_store import SchemaStore
from moorage.common.failures import Cause, Failure
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.inventory.snapshot import Program
from moorage.spec import EngineName
from tests.engines.real_vllm import IMAGE
from tests.engines.schema.shipped import schema_of

OWN = Schema(
    engine="vllm",
    version="0.32.0",
    arguments=(Argument(options=("--acme",), kind=Kind.SWITCH),),
)
DIGEST = "sha256:" + "ab" * 32


PARSER = """
import argparse, dataclasses, json

class FlexibleArgumentParser(argparse.ArgumentParser):
    pass

@dataclasses.dataclass
class Config:
    size: int = 0
    mode: str = ""

def config(text, cls=Config):
    try:
        return cls(**json.loads(text))
    except TypeError as error:
        raise argparse.ArgumentTypeError(str(error))

def optional(kind):
    return lambda text: None if text in ("", "None") else kind(text)

def make_arg_parser(parser):
    print("something prints while it is imported")
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--size", "-s", type=int, help="How large.")
    parser.add_argument("--sizes", type=optional(float), nargs="+")
    parser.add_argument("--mode", choices=["b", "a"])
    parser.add_argument("--config", type=config)
    parser.add_argument("--extra", type=optional(json.loads))
    parser.add_argument("--eager", action=argparse.BooleanOptionalAction)
    text = "--old is deprecated and will be removed in v0.9. Use --size instead."
    parser.add_argument("--old", help=text)
    text = "[DEPRECATED] Use the runner and `convert_mode` for that. In favor of them."
    parser.add_argument("--older", help=text)
    return parser
"""

EXPECTED: dict[str, dict[str, Any]] = {
    "--help": {"kind": "help", "options": ["--help", "-h"]},
    "--size": {"kind": "integer", "options": ["--size", "-s"]},
    "--sizes": {"kind": "number", "none": True, "values": "+", "options": ["--sizes"]},
    "--mode": {"kind": "text", "choices": ["a", "b"], "options": ["--mode"]},
    "--config": {"kind": "object", "keys": ["mode", "size"], "options": ["--config"]},
    "--extra": {"kind": "json", "none": True, "options": ["--extra"]},
    "--eager": {"kind": "switch", "options": ["--eager", "--no-eager"]},
    "--old": {
        "kind": "text",
        "options": ["--old"],
        "deprecated": {"gone_in": "0.9", "instead": "--size"},
    },
    "--older": {"kind": "text", "options": ["--older"], "deprecated": {}},
}


@pytest.fixture
def store(tmp_path: Path) -> SchemaStore:
    return SchemaStore(tmp_path)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("0.32.0", "0.32.0"),
        ("v0.32.0", "0.32.0"),
        ("0.32.0+cpu", "0.32.0"),
        ("0.18.1", "0.18.1"),
    ],
)
def test_a_shipped_version_is_found_however_it_is_written(
    store: SchemaStore, version: str, found: str
) -> None:
    schema = store.of_version(version)
    assert schema
    assert schema.version == found


@pytest.mark.parametrize("version", ["", "9.9.9", "0.32.0-custom", "0.32.1", "nightly"])
def test_a_version_that_nobody_looked_at_has_none(store: SchemaStore, version: str) -> None:
    assert store.of_version(version) is None


def test_what_was_extracted_here_wins_over_what_is_shipped(store: SchemaStore) -> None:
    store.keep(OWN, ("0.32.0",))
    assert store.of_version("0.32.0") == OWN


def test_an_image_is_known_by_any_of_its_digests(store: SchemaStore) -> None:
    (path,) = store.keep(OWN, (DIGEST,))
    assert ":" not in path.name
    assert store.of_image("", DIGEST) == OWN
    assert store.of_image("sha256:" + "cd" * 32) is None
    assert store.of_image() is None


def test_a_file_of_another_shape_counts_as_none(store: SchemaStore) -> None:
    (path,) = store.keep(OWN, (DIGEST,))
    path.write_text('{"format": 99}')
    assert store.of_image(DIGEST) is None


@pytest.mark.parametrize(
    "module", ["entrypoints/launchers/cli_args", "entrypoints/openai/cli_args"]
)
@pytest.mark.parametrize("knows_platform", [True, False])
def test_a_parser_is_described_wherever_a_version_keeps_it(
    tmp_path: Path, module: str, knows_platform: bool
) -> None:
    make_vllm(tmp_path, module, knows_platform)
    content = json.loads(extracted(tmp_path))
    assert content["version"] == "0.7.1"
    rows = {row["options"][0]: row for row in content["arguments"]}
    assert rows == EXPECTED
    assert Schema.model_validate(content).engine == "vllm"


def test_a_vllm_without_a_parser_is_told_apart(tmp_path: Path) -> None:
    make_vllm(tmp_path, "entrypoints/elsewhere", True)
    with pytest.raises(subprocess.CalledProcessError) as ended:
        extracted(tmp_path)
    assert "make_arg_parser was not found" in ended.value.stderr


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("python", "message"), [("sleep 60", "gave no answer within 0.2 s"), ("", "No such file")]
)
def test_a_program_that_does_not_tell_is_one_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, message: str
) -> None:
    interpreter = tmp_path / "python3"
    if python:
        interpreter.write_text(f"#!/bin/sh\nexec {python}\n")
        interpreter.chmod(0o755)
    program = tmp_path / "vllm"
    program.write_text(f"#!{interpreter}\n")
    found = Program(engine=EngineName.VLLM, path=str(program), version="0.32.0")
    monkeypatch.setattr(schema_extraction, "installed_program", lambda _: found)
    monkeypatch.setattr(schema_extraction, "EXTRACT_SECONDS", 0.2)
    with pytest.raises(Failure, match=message) as refusal:
        schema_of_installed(EngineName.VLLM)
    assert refusal.value.cause is Cause.LAUNCH_REFUSED


@pytest.mark.parametrize(
    ("version", "text", "told"),
    [
        ("version: 6301 (abc)", "-c, --ctx-size N   size of the context", ""),
        ("llama-server of acme", "", "no build: 'llama-server of acme"),
        ("version: 6301 (abc)", "-, what is this", "no help text: no option"),
    ],
)
def test_a_llama_server_tells_its_build_among_its_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, text: str, told: str
) -> None:
    program = tmp_path / "llama-server"
    program.write_text(
        f"#!/bin/sh\n[ $1 = --help ] && echo '{text}' && exit\necho '{version}' >&2\n"
    )
    program.chmod(0o755)
    found = Program(engine=EngineName.LLAMA_CPP, path=str(program), version="")
    monkeypatch.setattr(schema_extraction, "installed_program", lambda _: found)
    with pytest.raises(Failure, match=told) if told else nullcontext():
        schema = schema_of_installed(EngineName.LLAMA_CPP)
        assert (schema.version, *schema.options) == ("6301", "--ctx-size", "-c")


@pytest.mark.docker
def test_the_shipped_schema_is_what_the_image_says() -> None:
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True).returncode:
        pytest.skip(f"{IMAGE} is not here: make images")
    schema, names = schema_of_image(EngineName.VLLM, IMAGE)
    assert schema == schema_of("0.32.0")
    assert any(name.startswith("sha256:") for name in names)


def make_vllm(folder: Path, module: str, knows_platform: bool) -> None:
    package = folder / "vllm"
    platform = "cpu" if knows_platform else ""
    texts = {
        "__init__.py": "__version__ = '0.7.1+cpu'",
        "platforms/__init__.py": f"class current_platform: device_type = '{platform}'",
        "platforms/cpu.py": "class CpuPlatform: device_type = 'cpu'",
        f"{module}.py": PARSER,
    }
    for name, text in texts.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def extracted(folder: Path) -> str:
    """What the script prints, given on standard input as to a container."""
    return subprocess.run(
        [sys.executable, "-"],
        input=EXTRACT_SCRIPT.read_text(),
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
