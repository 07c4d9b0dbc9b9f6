"""A custom engine in a container: an image and a command that moorage knows nothing about."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.docker, pytest.mark.server]

WORDS = "--host 0.0.0.0 --port={{port}} --served-model-name {{model_name}}"
ON_CPU = {"accelerators": 0, "ram": "64MiB"}


def answer(release: dict[str, Any], name: str) -> str:
    """What the engine says to a prompt."""
    (workload,) = release["workloads"]
    request = {"model": name, "prompt": "hello", "max_tokens": 1}
    got = httpx.post(f"{workload['endpoint']}/v1/completions", json=request, timeout=10)
    return str(got.raise_for_status().json()["choices"][0]["finish_reason"])


def test_any_image_and_command_is_deployed_asked_and_retired(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = {
        "name": "custom",
        "image": lifecycle_image,
        "command": ["vllm", "{{model_path}}", *WORDS.split()],
        "shm": "64MiB",
    }
    spec = workplace.spec(engine=engine, placement=ON_CPU)
    name = workplace.named("tiny")
    release = workplace.json("deploy", spec)["release"]
    (container,) = release["plan"]["containers"]
    assert [flag["written"] for flag in container["command"]] == [True]
    assert release["plan"]["engine_version"] == ""
    assert "unknown" in workplace.run("show", name).stdout
    phases = [probe["phase"] for probe in release["readiness"][0]["probes"]]
    assert phases == ["listening", "healthy", "answered"]
    assert answer(release, name) == "length"
    workplace.run("retire", name)
    assert workplace.is_clean()


def test_a_server_that_requires_a_key_is_proven_and_asked_with_its_secret(
    workplace: Workplace, lifecycle_image: str
) -> None:
    workplace.environment["TEAM_KEY"] = "sesame-open"
    engine = {
        "name": "custom",
        "image": lifecycle_image,
        "command": ["vllm", "{{model_path}}", *WORDS.split()],
        "api_key_variable": "VLLM_API_KEY",
        "shm": "64MiB",
    }
    secrets = {"VLLM_API_KEY": "TEAM_KEY"}
    spec = workplace.spec(engine=engine, secrets=secrets, placement=ON_CPU)
    release = workplace.json("deploy", spec)["release"]
    (workload,) = release["workloads"]
    listing = f"{workload['endpoint']}/v1/models"
    assert httpx.get(listing, trust_env=False).status_code == 401
    name = workplace.named("tiny")
    assert workplace.run("chat", name, "hello").stdout.strip() == "ok"
    assert workplace.run("key", "show", name).stdout.strip() == "sesame-open"
    del engine["api_key_variable"]
    spec = workplace.spec(engine=engine, secrets=secrets, placement=ON_CPU)
    error = workplace.json("deploy", spec, code=6)["error"]
    assert "`engine.api_key_variable`" in error["suggestion"]


def test_a_custom_engine_that_the_fleet_names_is_the_newest_of_its_versions(
    workplace: Workplace, lifecycle_image: str
) -> None:
    fleet = workplace.folder / "fleet.yaml"
    own = f"{{image: {lifecycle_image}, entrypoint: vllm serve, run_command: '{WORDS}'}}"
    versions = f"{{'1.9': {{image: 'moorage/gone:1', entrypoint: x}}, '1.10': {own}}}"
    fleet.write_text(f"{fleet.read_text()}engines: {{acme: {{versions: {versions}}}}}\n")
    files = workplace.folder / "files"
    files.mkdir()
    (files / "model.onnx").write_bytes(b"nothing that moorage could read")
    spec = workplace.spec(
        source=f"file://{files}",
        engine={"name": "custom", "custom": "acme", "shm": "64MiB"},
        placement=ON_CPU,
    )
    release = workplace.json("deploy", spec)["release"]
    assert release["plan"]["engine_version"] == "1.10"
    assert release["image"]["reference"] == lifecycle_image
    assert answer(release, workplace.named("tiny")) == "length"


def test_a_health_path_that_never_answers_ends_the_deploy(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = {
        "name": "custom",
        "image": lifecycle_image,
        "command": ["vllm", *WORDS.split()],
        "shm": "64MiB",
    }
    readiness = {"probe": {"path": "/ready"}, "deadlines": {"load_seconds": 3}}
    spec = workplace.spec(engine=engine, placement=ON_CPU, readiness=readiness)
    error = workplace.json("deploy", spec, code=6)["error"]
    assert error["cause"] == "load-timeout"
    assert workplace.is_clean()
