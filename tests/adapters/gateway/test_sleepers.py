from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from moorage.adapters.gateway import sleepers
from moorage.adapters.gateway.sleepers import Sleepers
from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure

REFUSES = """import sys
print('{"error": {"cause": "no-fit", "detail": "too small"}}')
sys.exit(3)"""


@pytest.mark.parametrize(
    ("program", "cause", "words"),
    [
        (REFUSES, Cause.NO_FIT, "too small"),
        ("raise MemoryError('all gone')", Cause.INTERRUPTED, "`moorage unload` has ended: MemoryE"),
        ("import os; os.abort()", Cause.INTERRUPTED, "`moorage unload` has ended"),
    ],
)
async def test_a_command_that_fails_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, cause: Cause, words: str
) -> None:
    monkeypatch.setattr(sleepers, "COMMAND", (sys.executable, "-c", program))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        with pytest.raises(Failure, match=words) as caught:
            await Sleepers(ledger, tmp_path, tuple).put_to_sleep("tiny", "idle")
        assert caught.value.cause is cause
