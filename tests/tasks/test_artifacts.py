"""A page that Prefect does not take is noted, and fails nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from moorage.common.failures import Failure
from moorage.releases.release import StepRecord
from tasks import artifacts as pages
from tasks.artifacts import Bar, Progress, with_progress
from tasks.journal import Note, journal


class Heard:
    """A listener that keeps what is noted."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def started(self, step: str) -> None: ...

    def progressed(self, step: str, done: int, total: int) -> None: ...

    def ended(self, record: StepRecord, error: BaseException | None) -> None: ...

    def noted(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def _in_a_flow_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "flow_run_context", object)


@pytest.fixture
def heard() -> Iterator[Heard]:
    listener = Heard()
    with journal(listener):
        yield listener


async def refused(**_: Any) -> None:
    raise httpx.ConnectError("All connection attempts failed")


async def silent(**_: Any) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("api", "detail"), [(refused, "All connection attempts failed"), (silent, "TimeoutError")]
)
def test_a_page_that_is_not_taken_is_told(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, api: Any, detail: str
) -> None:
    monkeypatch.setattr(pages, "PAGE_SECONDS", 0.01)
    monkeypatch.setattr("prefect.artifacts.acreate_table_artifact", api)
    monkeypatch.setattr("prefect.artifacts.acreate_progress_artifact", api)

    async def show() -> None:
        await pages.show_table("readiness-tiny", [], "")
        await Bar("stage-tiny", "").move(1.0)

    asyncio.run(show())
    first, second = heard.notes
    assert first.startswith("readiness-tiny is not shown: Prefect's API")
    assert second.startswith("stage-tiny is not shown")
    assert detail in first


def test_what_is_wrong_with_a_page_itself_is_not_hidden(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(**_: Any) -> None:
        raise ValueError("key")

    monkeypatch.setattr("prefect.artifacts.acreate_markdown_artifact", wrong)
    with pytest.raises(ValueError, match="key"):
        asyncio.run(pages.show_markdown("No Key", "", ""))
    assert heard.notes == []


async def test_without_a_flow_run_there_are_no_pages(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "flow_run_context", lambda: None)
    monkeypatch.setattr("prefect.artifacts.acreate_markdown_artifact", refused)
    await pages.show_markdown("plan-tiny", "", "")
    assert heard.notes == []


async def test_work_that_outlives_its_caller_ends_at_its_next_report() -> None:
    begun, reports = asyncio.Event(), list[Progress]()

    async def download(report: Progress) -> None:
        report(1, 9)
        reports.append(report)
        begun.set()
        await asyncio.Event().wait()

    caller = asyncio.create_task(with_progress(download, Note("stage", []), "download-tiny", "It"))
    await begun.wait()
    caller.cancel()
    await asyncio.wait({caller})
    with pytest.raises(Failure, match="It: its caller has left"):
        reports[0](2, 9)


async def test_a_table_that_has_not_changed_is_not_shown_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []

    async def create(*, table: list[dict[str, str]], **_: str) -> None:
        shown.append(json.dumps(table))

    async def newest(_key: str) -> str | None:
        return shown[-1] if shown else None

    monkeypatch.setattr("prefect.artifacts.acreate_table_artifact", create)
    monkeypatch.setattr(pages, "_newest", newest)
    for seen in ("yes", "yes", "no", "no", "yes"):
        await pages.show_table("hosts", [{"seen": seen}], "", if_changed=True)
    assert shown == [f'[{{"seen": "{seen}"}}]' for seen in ("yes", "no", "yes")]
