from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.remote_source import RemoteSource
from moorage.adapters.sources.store import ModelStore
from moorage.models.assets import Asset
from moorage.models.pin import AssetRole
from tests.hub.server import Hub
from tests.hub.tiny import model

REPO = "org/tiny"


@pytest.fixture(autouse=True)
def _no_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing transformers takes seconds; test_pretrained.py covers it."""
    monkeypatch.setattr("moorage.adapters.files.pretrained._completed", lambda *_: None)


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever HF_HUB_OFFLINE says where the tests run: the hub is on loopback."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub({REPO: model()}) as hub:
        yield hub


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models", REPO)


@pytest.fixture
def asset() -> Asset:
    return Asset(role=AssetRole.MODEL, name="tiny", source=f"hf://{REPO}")


@pytest.fixture
def source(hub: Hub, store: ModelStore) -> Callable[..., RemoteSource]:
    """Makes the source under test; by default it tries everything once and waits for nothing."""

    def make(
        *,
        token: str | None = None,
        waits: tuple[float, ...] = (),
        timeout: float = 5,
        offline: bool = False,
    ) -> RemoteSource:
        client = HubClient(REPO, hub.url, token, timeout=timeout, waits=waits)
        return RemoteSource(client, store, workers=4, offline=offline)

    return make
