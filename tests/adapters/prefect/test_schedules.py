"""Schedules that a deployment keeps when it is served again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from moorage.adapters.prefect import schedules


class Client:
    """Prefect's client, with the schedules of one deployment."""

    def __init__(self, *slugs: str | None) -> None:
        self.slugs = {uuid4(): slug for slug in slugs}

    async def read_deployment_schedules(self, _deployment: UUID) -> list[SimpleNamespace]:
        return [SimpleNamespace(id=one, slug=slug) for one, slug in self.slugs.items()]

    async def delete_deployment_schedule(self, _deployment: UUID, schedule: UUID) -> None:
        del self.slugs[schedule]


async def test_what_left_the_file_goes_and_the_schedules_of_models_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client("nightly", "each-night", "moorage.tiny", None)

    @asynccontextmanager
    async def there() -> AsyncIterator[Client]:
        yield client

    monkeypatch.setattr(schedules, "get_client", there)
    await schedules.remove_other_schedules(uuid4(), {"each-night"})
    assert list(client.slugs.values()) == ["each-night", "moorage.tiny"]
