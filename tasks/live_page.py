"""A page that is written again while a run goes on, with a bar of how far it is."""

from __future__ import annotations

import time
from uuid import UUID

from prefect.artifacts import acreate_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from tasks.artifacts import if_possible
from tasks.progress import Bar

EVERY_SECONDS = 5.0


class LivePage:
    """One markdown artifact and one progress artifact of a run.

    Args:
        key: Of the page; the bar's ends with `-progress`.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._page: UUID | None = None
        self._bar = Bar(f"{key}-progress", "")
        self._told_at, self._writing = float("-inf"), False

    @property
    def is_due(self) -> bool:
        """Whether it was last written long enough ago, and is not being written now."""
        return not self._writing and time.monotonic() - self._told_at >= EVERY_SECONDS

    async def write(self, markdown: str, description: str, percent: float) -> None:
        """Write both; that Prefect's server does not take them is no reason to fail."""
        self._writing, self._bar.description = True, description
        try:
            await if_possible(self._write(markdown, description), self._key)
            await self._bar.move(percent)
        finally:
            self._told_at, self._writing = time.monotonic(), False

    async def _write(self, markdown: str, description: str) -> None:
        if self._page is None:
            self._page = await acreate_markdown_artifact(
                markdown=markdown, key=self._key, description=description
            )
            return
        async with get_client() as client:
            changed = ArtifactUpdate(data=markdown, description=description)
            await client.update_artifact(self._page, changed)
