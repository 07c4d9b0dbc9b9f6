from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.workplace import REPOSITORY, Workplace
from tests.local_registry import require_docker
from tests.prefect_server import PrefectServer
from tests.prefect_server import runs_server as prefect_server

__all__ = ["prefect_server"]

VLLM_VERSION = "0.32.0"


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model: random weights, a real tokenizer, a chat template."""
    return tiny_model(tmp_path_factory.mktemp("models"), "llama")


@pytest.fixture(scope="session")
def tiny_gguf(tiny_llama: Path) -> Path:
    """The same model as one GGUF file, its weights as they are."""
    return gguf_of(tiny_llama, tiny_llama.with_name("tiny.gguf"))


@pytest.fixture(scope="session")
def tiny_whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real Whisper with random weights: it transcribes, but nothing that was said."""
    model = tmp_path_factory.mktemp("models") / "tiny-whisper"
    script = REPOSITORY / "scripts" / "make_tiny_whisper.py"
    subprocess.run([sys.executable, script, model], check=True, capture_output=True)
    return model


@pytest.fixture
def make_lora(tmp_path: Path) -> Callable[..., Path]:
    """Makes an adapter for the tiny llama."""

    def make(name: str, *arguments: object) -> Path:
        folder = tmp_path / name
        script = REPOSITORY / "scripts" / "make_tiny_lora.py"
        command = [sys.executable, str(script), str(folder), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True)
        return folder

    return make


@pytest.fixture(scope="session")
def triton_image(docker: None) -> str:  # noqa: ARG001
    """A real tritonserver, with a backend that keeps the contract of NVIDIA's for vLLM."""
    script = REPOSITORY / "scripts" / "build_triton_image.sh"
    subprocess.run([script], check=True, capture_output=True)
    return "moorage/triton:1"


@pytest.fixture(scope="session")
def llama_image(docker: None) -> str:  # noqa: ARG001
    """The server of llama.cpp for CPU, as the official image has it."""
    script = REPOSITORY / "scripts" / "build_llama_cpp_image.sh"
    subprocess.run([script, sys.executable], check=True, capture_output=True)
    return "moorage/llama-cpp:1"


@pytest.fixture(scope="session")
def vllm_image(docker: None) -> str:  # noqa: ARG001
    """A real vLLM for CPU."""
    script = REPOSITORY / "scripts" / "build_vllm_cpu_image.sh"
    built = subprocess.run([script, VLLM_VERSION], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"the vLLM image cannot be built here: {built.stderr[-300:]}")
    return f"moorage/vllm-cpu:{VLLM_VERSION}"


@pytest.fixture
def workplace(
    tmp_path: Path, tiny_llama: Path, prefect_server: PrefectServer
) -> Iterator[Workplace]:
    """Uses a running Prefect server, for a temporary one costs seconds a command."""
    place = Workplace(tmp_path, tiny_llama, prefect_server.environment)
    yield place
    place.close()


@pytest.fixture(scope="session")
def lifecycle_program() -> Path:
    """A tiny server that speaks vLLM's HTTP and misbehaves as its variable `LIFECYCLE` says."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed; it builds the tiny server of these tests")
    script = REPOSITORY / "scripts" / "build_lifecycle_image.sh"
    subprocess.run([script, "--binary-only"], check=True, capture_output=True)
    cache = os.environ.get("MOORAGE_BUILD_CACHE", Path.home() / ".cache" / "moorage" / "images")
    return Path(cache) / "lifecycle" / "vllm"


@pytest.fixture(scope="session")
def lifecycle_image(lifecycle_program: Path, docker: None) -> str:  # noqa: ARG001
    """The same server as a container image."""
    script = REPOSITORY / "scripts" / "build_lifecycle_image.sh"
    subprocess.run([script], check=True, capture_output=True)
    return "moorage/lifecycle:1"


@pytest.fixture(scope="session")
def docker() -> None:
    require_docker()


def tiny_model(folder: Path, kind: str) -> Path:
    """A real model of some kind, with random weights."""
    model = folder / f"tiny-{kind}"
    script = REPOSITORY / "scripts" / "make_tiny_model.py"
    subprocess.run([sys.executable, script, model, "--kind", kind], check=True, capture_output=True)
    return model


def gguf_of(model: Path, out: Path, *arguments: str) -> Path:
    """A tiny model as one GGUF file."""
    script = REPOSITORY / "scripts" / "make_tiny_gguf.py"
    subprocess.run(
        [sys.executable, script, model, out, *arguments], check=True, capture_output=True
    )
    return out


def tiny_adapter(folder: Path, name: str, *arguments: object) -> tuple[Path, Path]:
    """A LoRA adapter for the tiny llama: as PEFT saves it, and as a GGUF file."""
    saved, file = folder / name, folder / f"{name}-F32.gguf"
    scripts = {"make_tiny_lora.py": arguments, "make_tiny_lora_gguf.py": (file,)}
    for script, more in scripts.items():
        command = [sys.executable, *map(str, (REPOSITORY / "scripts" / script, saved, *more))]
        subprocess.run(command, check=True, capture_output=True)
    return saved, file


def vllm_engine(image: str, *args: str, **more: Any) -> dict[str, Any]:
    """`engine` of a spec: the real vLLM, as small and quick as it gets."""
    return {
        "name": "vllm",
        "runtime": "docker",
        "version": VLLM_VERSION,
        "image": image,
        "args": ["--enforce-eager", *args],
        "keep_cache": False,  # the image has what a start needs
        "shm": "512MiB",
        **more,
    }


def process_engine(program: Path, behaviour: str = "ok", **more: Any) -> dict[str, Any]:
    """`engine` of a spec: the tiny server as a process."""
    arguments = [
        "--host",
        "{{host}}",
        "--port",
        "{{port}}",
        "--served-model-name",
        "{{model_name}}",
    ]
    return {
        "name": "vllm",
        "runtime": "process",
        "command": [str(program), "serve", "{{model_path}}", *arguments],
        "env": {"LIFECYCLE": behaviour, **more},
    }


def container_engine(image: str, behaviour: str = "ok", **more: Any) -> dict[str, Any]:
    """`engine` of a spec: the tiny server in a container, started as vLLM would be."""
    return {
        "name": "vllm",
        "runtime": "docker",
        "image": image,
        "shm": "64MiB",
        "env": {"LIFECYCLE": behaviour, **more},
    }


def installed_engine(workplace: Workplace, program: Path, behaviour: str) -> dict[str, Any]:
    """`engine` of a spec: the tiny server as an installed vLLM, started as moorage plans it."""
    path = f"{program.parent}{os.pathsep}{workplace.environment['PATH']}"
    workplace.environment["PATH"] = path
    return {"name": "vllm", "runtime": "process", "env": {"LIFECYCLE": behaviour}}
