"""Golden files: whole outputs that somebody read and approved.

`pytest --regenerate-golden` rewrites them; read the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-golden", action="store_true", help="Write the golden files again."
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--regenerate-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert text == file.read_text()

    return compare
