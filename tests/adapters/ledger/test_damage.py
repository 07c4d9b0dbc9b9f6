"""A damaged ledger file is reported as such, for damage anywhere and for every command."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_claim, a_fleet, a_release, a_spec, a_workload

PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with something in every table that matters."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    with closing(Ledger(f"sqlite:///{path}")) as ledger:
        for number in range(12):
            spec = a_spec(name=f"m{number}")
            release = ledger.releases.begin(spec, REVISION, "run-1")
            ledger.claims.commit(release, (a_claim(amount=1),), a_fleet())
            ledger.workloads.put(release, a_workload(f"w{number}", release=release))
            ledger.releases.move(release, ReleaseState.STARTING)
            ledger.releases.take_over(a_release(release, spec=spec))
    return path


def use(url: str) -> None:
    """Everything that commands and flows ask of a ledger."""
    with closing(Ledger(url)) as ledger:
        for one in ledger.overviews.current():
            ledger.releases.get(one.row.id)
            ledger.releases.transitions(one.row.id)
        ledger.releases.unfinished()
        ledger.releases.not_undone()
        ledger.claims.all()
        assert ledger.identity
        release = ledger.releases.begin(a_spec(name="new"), REVISION, "")
        ledger.claims.commit(release, (a_claim(amount=1),), a_fleet())
        ledger.releases.end(release, ReleaseState.ERROR)


Damage = Callable[[bytes], bytes]

DAMAGES: dict[str, Damage] = {
    "text over it": lambda whole: b"hello, I was a ledger once\n" * (len(whole) // 27),
    "zeros over it": lambda whole: bytes(len(whole)),
    "no header": lambda whole: bytes(100) + whole[100:],
    "half of it": lambda whole: whole[: len(whole) // 2],
    "cut in a page": lambda whole: whole[: 3 * PAGE + 17],
    "all but its first page": lambda whole: whole[:PAGE] + bytes(len(whole) - PAGE),
    "bad schema": lambda whole: whole.replace(b"CREATE TABLE", b"CREATE TUBLE"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_ledger_says_so_and_what_to_do(
    sound: Path, tmp_path: Path, damage: Damage
) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(damage(sound.read_bytes()))
    with pytest.raises(Failure) as caught:
        use(f"sqlite:///{path}")
    assert caught.value.cause is Cause.LEDGER_DAMAGED
    assert str(path) in caught.value.detail
    assert "moorage ledger restore" in caught.value.suggestion
    assert caught.value.cause.exit_code == ExitCode.MACHINE


def test_wherever_bytes_are_wrong_nothing_but_a_failure_comes_out(
    sound: Path, tmp_path: Path
) -> None:
    chance, reported = random.Random(7), 0
    whole = sound.read_bytes()
    for number in range(60):
        path = tmp_path / f"{number}.db"
        shutil.copy(sound, path)
        with path.open("r+b") as file:
            for _ in range(chance.choice((1, 8, 64))):
                file.seek(chance.randrange(len(whole)))
                file.write(chance.randbytes(chance.choice((1, 16, 200))))
        try:
            use(f"sqlite:///{path}")
        except Failure as failure:
            reported += failure.cause is Cause.LEDGER_DAMAGED
    assert reported > 20
