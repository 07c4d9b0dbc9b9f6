"""`moorage pull` and `moorage list`, with a real small hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.common.failures import ExitCode
from tests.hub.server import Hub
from tests.hub.tiny import gguf, model

REPO, QUANTIZED = "acme/tiny", "acme/tiny-GGUF"
SMALL, LARGE = "tiny-Q4_0.gguf", "tiny-Q8_0.gguf"
F32 = 0


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {name: gguf({"a": (F32, [64])}, 256) for name in (SMALL, LARGE)}
    with Hub({REPO: model(), QUANTIZED: files}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        yield hub


def test_a_model_is_downloaded_once_and_listed(hub: Hub) -> None:
    (pulled,) = answer("pull", REPO)
    assert pulled["revision"] == hub.branches[REPO]["main"]
    assert (pulled["model"], pulled["format"]) == (f"hf://{REPO}", "safetensors")
    assert Path(pulled["path"], "config.json").is_file()
    sent = hub.sent("model-1-of-2.safetensors")
    assert answer("pull", f"hf://{REPO}") == [pulled]
    assert hub.sent("model-1-of-2.safetensors") == sent
    (listed,) = answer("list")
    assert (listed["source"], listed["revision"]) == (pulled["model"], pulled["revision"])


@pytest.mark.usefixtures("hub")
def test_each_quantization_has_a_place_of_its_own() -> None:
    (small,) = answer("pull", f"{QUANTIZED}:Q4_0")
    (large,) = answer("pull", QUANTIZED, "--files", "*Q8*")
    names = [
        sorted(path.name for path in Path(one["path"]).glob("*.gguf")) for one in (small, large)
    ]
    assert names == [[SMALL], [LARGE]]
    assert small["model"] == f"hf://{QUANTIZED}#*Q4_0*"
    assert len(answer("list")) == 2


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("name", "cause"), [(QUANTIZED, "source-incomplete"), ("acme/none", "source-missing")]
)
def test_what_cannot_be_pulled_is_told(name: str, cause: str) -> None:
    result = CliRunner().invoke(app, ["pull", name, "--json"])
    assert result.exit_code == ExitCode.SOURCE, result.output
    assert json.loads(result.stdout)["error"]["cause"] == cause


def answer(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
