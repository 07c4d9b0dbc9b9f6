from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.common.saga import Saga


class Diary:
    """Remembers what was done and what was reported."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.reported: list[tuple[str, str]] = []

    def undo(self, name: str) -> None:
        self.done.append(name)

    def report(self, label: str, error: BaseException | None) -> None:
        self.reported.append((label, str(error or "")))


def run(diary: Diary, *undos: Callable[[], None], error: BaseException | None) -> None:
    with Saga(diary.report) as saga:
        for number, undo in enumerate(undos):
            saga.arm(f"undo {number}", undo)
        if error:
            raise error


def test_nothing_is_undone_when_all_goes_well() -> None:
    diary = Diary()
    run(diary, lambda: diary.undo("claims"), error=None)
    assert (diary.done, diary.reported) == ([], [])


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_however_it_ends_the_latest_effect_is_undone_first(error: BaseException) -> None:
    diary = Diary()
    with pytest.raises(type(error)):
        run(diary, lambda: diary.undo("claims"), lambda: diary.undo("container"), error=error)
    assert diary.done == ["container", "claims"]
    assert diary.reported == [("undo 1", ""), ("undo 0", "")]


def test_an_undo_that_fails_is_reported_and_keeps_no_other_from_running() -> None:
    diary = Diary()

    def fail() -> None:
        raise OSError("daemon away")

    with pytest.raises(ValueError, match="the cause"):
        run(diary, lambda: diary.undo("claims"), fail, error=ValueError("the cause"))
    assert diary.done == ["claims"]
    assert diary.reported == [("undo 1", "daemon away"), ("undo 0", "")]


def test_an_undo_whose_effect_stays_is_not_reported() -> None:
    diary = Diary()

    def effect() -> None:
        with Saga(diary.report) as saga:
            saga.arm("free", lambda: True)
            saga.arm("stop what serves", lambda: False)
            raise ValueError("too late")

    with pytest.raises(ValueError, match="too late"):
        effect()
    assert diary.reported == [("free", "")]


@pytest.mark.parametrize("trouble", [BrokenPipeError("terminal gone"), SystemExit(1)], ids=repr)
def test_that_nobody_can_be_told_keeps_no_undo_from_running(trouble: BaseException) -> None:
    diary = Diary()

    def report(_label: str, _error: BaseException | None) -> None:
        raise trouble

    def telling() -> None:
        diary.undo("container")
        report("", None)

    def effect() -> None:
        with Saga(report) as saga:
            saga.arm("free", diary.undo, "claims")
            saga.arm("stop", telling)
            raise ValueError("the cause")

    with pytest.raises(ValueError, match="the cause"):
        effect()
    assert diary.done == ["container", "claims"]


def test_an_undo_is_armed_before_its_effect_so_a_half_effect_is_undone() -> None:
    diary = Diary()

    def effect() -> None:
        with Saga(diary.report) as saga:
            saga.arm("stop", diary.undo, name="container")
            raise RuntimeError("half done")

    with pytest.raises(RuntimeError):
        effect()
    assert diary.done == ["container"]
