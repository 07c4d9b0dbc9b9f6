"""The fixture is a hub: the hub's own downloader works with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

from tests.hub.server import Hub
from tests.hub.tiny import model


@pytest.mark.parametrize("cdn", [False, True], ids=["one host", "cdn"])
@pytest.mark.parametrize("name", ["config.json", "model-1-of-2.safetensors"])
def test_the_hubs_own_downloader_gets_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, cdn: bool
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with Hub({"org/tiny": model()}, token="hf_token", cdn=cdn) as hub:
        found = hf_hub_download(
            "org/tiny", name, local_dir=tmp_path, endpoint=hub.url, token="hf_token"
        )
    assert Path(found).read_bytes() == model()[name]
