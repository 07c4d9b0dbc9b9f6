"""A port that moorage chose is taken by a stranger at the last moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

LOSES_ITS_PORT_ONCE = """#!/bin/sh
mkdir {mark} 2>/dev/null && echo "OSError: [Errno 98] Address already in use" && exit 1
exec "$@"
"""


@pytest.mark.parametrize("is_ours", [True, False])
def test_it_is_tried_again_where_the_port_was_ours_to_choose(
    workplace: Workplace, lifecycle_program: Path, is_ours: bool
) -> None:
    script = workplace.folder / "engine.sh"
    script.write_text(LOSES_ITS_PORT_ONCE.format(mark=workplace.folder / "mark"))
    script.chmod(0o755)
    engine = process_engine(lifecycle_program)
    engine["command"] = [str(script), *engine["command"]]
    spec = workplace.spec(engine=engine, port="auto" if is_ours else workplace.first_port + 39)
    workplace.run("deploy", spec, code=0 if is_ours else 7)
    states = [(row.state, row.cause) for row in workplace.releases()]
    assert states == [("running", ""), ("error", "port-taken")][0 if is_ours else 1 :]
