"""What choosing among quantizations asks of a source, and what an unchanged deploy does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from flows.dry_run import ReleaseSource
from moorage.common.failures import Cause, Failure
from moorage.inventory.snapshot import FleetSnapshot, Program
from moorage.models.quantizations import FilesChoice
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName, ModelSpec
from tasks import context
from tasks.analyze import choose_files, find_quantizations
from tasks.context import settings
from tasks.journal import journal
from tests.builders import a_fleet, a_host, a_release, a_row, a_spec
from tests.hub.server import Hub
from tests.hub.tiny import gguf, model

REPO, PLAIN = "acme/tiny-GGUF", "acme/tiny"
LARGE, MIDDLE, SMALL = "tiny-Q8_0.gguf", "tiny-Q6_K.gguf", "tiny-Q4_0.gguf"
F32 = 0
SPEC = a_spec(source=f"hf://{REPO}", files="auto")
LLAMA = Program(engine=EngineName.LLAMA_CPP, path="/opt/llama-server", version="11549")
FLEET = a_fleet(a_host("cpu-1", gpus=0, programs=(LLAMA,)))
MADE = FilesChoice(pattern=MIDDLE, reason="", verdicts=())


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    sizes = ((LARGE, 300_000), (MIDDLE, 200_000), (SMALL, 100_000))
    files = {name: gguf({"a": (F32, [size])}, 4 * size) for name, size in sizes}
    with Hub({REPO: {"README.md": b"tiny", **files}, PLAIN: model()}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
        context._open.cache_clear()
        yield hub
        context._open.cache_clear()


async def test_only_the_header_of_what_is_tried_is_read_and_nothing_is_stored(hub: Hub) -> None:
    with journal() as opened:
        found = await find_quantizations.untracked(SPEC)
        choice = await choose_files.untracked(SPEC, found, FLEET, "")
    assert choice.pattern == LARGE
    assert [one.refusal for one in choice.verdicts] == ["", *["smaller than the chosen one"] * 2]
    assert hub.sent(LARGE) == 65_536
    assert not hub.requests_for(MIDDLE)
    assert not hub.requests_for(SMALL)
    assert not settings().models.exists()
    assert [one.summary for one in opened.steps] == [
        "3 quantizations",
        f"{LARGE}, the largest that fits whole in RAM",
    ]


@pytest.mark.parametrize(
    ("source", "offline"), [(f"hf://{PLAIN}", False), (f"hf://{REPO}", True), ("file:///no", False)]
)
async def test_where_there_is_nothing_to_choose_resolving_decides(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, source: str, offline: bool
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", str(int(offline)))
    context._open.cache_clear()
    with journal():
        spec = SPEC.model_copy(update={"source": source})
        assert await find_quantizations.untracked(spec) == ()
    assert not hub.requests_for("model-1-of-2.safetensors")


async def test_what_serves_keeps_its_files_until_they_are_gone(hub: Hub) -> None:
    revision = hub.branches[REPO]["main"]
    old = row(SPEC, revision, MADE)
    with journal():
        source = ReleaseSource(SPEC, {})
        assert await source.is_served_by(old)
        assert source.analyzed
        assert [file.name for file in source.analyzed.model.files] == ["README.md", MIDDLE]
        assert not await ReleaseSource(SPEC, {}).is_served_by(row(SPEC, "0" * 40, MADE))
        other = a_spec(source=f"hf://{REPO}", files="auto", context=512)
        assert not await ReleaseSource(other, {}).is_served_by(old)
        hub.push(REPO, {LARGE: gguf({"a": (F32, [10])}, 40)})
        assert not await ReleaseSource(SPEC, {}).is_served_by(old)


async def test_a_rollback_takes_the_recorded_files_without_a_choice(hub: Hub) -> None:
    target = row(SPEC, hub.branches[REPO]["main"], MADE).release
    assert target

    async def unwanted() -> FleetSnapshot:
        raise AssertionError("nothing is chosen, so the fleet does not matter yet")

    with journal():
        source = ReleaseSource(target.spec, {}, target)
        found = await source.resolve_and_derive(unwanted, "")
    assert (found.files, found.spec.files) == (MADE, MIDDLE)
    assert [file.name for file in found.model.files] == ["README.md", MIDDLE]


async def test_a_repair_of_what_is_well_by_now_takes_no_moved_branch(hub: Hub) -> None:
    spec, revision = a_spec(source=f"hf://{PLAIN}"), hub.branches[PLAIN]["main"]
    old = a_row(a_release(spec=spec, revision=revision))
    hub.push(PLAIN, {"README.md": b"moved"})
    with journal():
        source = ReleaseSource(spec, {}, old.release)
        assert await source.is_served_by(old)
        assert (await source.resolve_and_derive(AsyncMock(), "")).model.revision == revision


async def test_several_models_in_one_place_are_refused(hub: Hub) -> None:
    hub.push(REPO, {name: gguf({"a": (F32, [10])}, 40) for name in ("a-Q4_0.gguf", "b-Q8_0.gguf")})
    with journal(), pytest.raises(Failure, match=r"of one model: a-Q4_0") as caught:
        await find_quantizations.untracked(SPEC)
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


def row(spec: ModelSpec, revision: str, choice: FilesChoice) -> ReleaseRow:
    return a_row(a_release(spec=spec, revision=revision, files=choice))
