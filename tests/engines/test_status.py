"""Row D5: what an engine is on a host, in Docker Model Runner's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.engines.installed import EngineState, EngineStatus, engine_status
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot
from moorage.spec import EngineName
from tests.builders import a_cpu_host, a_host
from tests.engines.planning import LLAMA_INSTALLED, VLLM_INSTALLED


@pytest.mark.parametrize(
    ("text", "state", "details"),
    [
        ("", EngineState.NOT_INSTALLED, ""),
        ("Running", EngineState.RUNNING, ""),
        ("Running: vllm 0.1", EngineState.RUNNING, "vllm 0.1"),
        ("Running:x", EngineState.ERROR, "Running:x"),
        ("weird", EngineState.ERROR, "weird"),
        ("Not Installed: a: b", EngineState.NOT_INSTALLED, "a: b"),
        ("Installing: downloading", EngineState.INSTALLING, "downloading"),
    ],
)
def test_a_status_is_read(text: str, state: EngineState, details: str) -> None:
    assert EngineStatus.parse(text) == EngineStatus(state=state, details=details)


@given(st.sampled_from(EngineState), st.text())
def test_what_is_written_is_read_back(state: EngineState, details: str) -> None:
    status = EngineStatus(state=state, details=details)
    assert EngineStatus.parse(str(status)) == status


@pytest.mark.parametrize(
    ("name", "host", "status"),
    [
        (EngineName.VLLM, a_cpu_host(), "Not Installed: package not installed"),
        (
            EngineName.VLLM,
            a_host(images=frozenset({"vllm/vllm-openai:v0.32.0"}), docker="27.1"),
            "Running: 0.32.0 as an image",
        ),
        (
            EngineName.VLLM,
            a_host(programs=(VLLM_INSTALLED,), images=frozenset({"vllm/vllm-openai:v0.30.0"})),
            "Running: 0.31.0 as a program, 0.30.0 as an image",
        ),
        (
            EngineName.LLAMA_CPP,
            a_cpu_host(programs=(LLAMA_INSTALLED,)),
            "Running: 2026.10.11549 as a program",
        ),
        (EngineName.VLLM, a_host(unreachable="no route to host"), "Error: no route to host"),
        (
            EngineName.SGLANG,
            a_host(docker="27.1"),
            "Not Installed: package not installed, no image here",
        ),
    ],
)
def test_a_host_tells_what_is_there(name: EngineName, host: HostSnapshot, status: str) -> None:
    assert str(engine_status(ENGINES[name], host)) == status
