from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import installed_engine, lifecycle_program, tiny_llama
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer
from tests.prefect_server import runs_server as prefect_server

__all__ = ["lifecycle_program", "prefect_server", "tiny_llama"]


@pytest.fixture
def desk(
    tiny_llama: Path, lifecycle_program: Path, prefect_server: PrefectServer
) -> Iterator[Workplace]:
    """A folder with a model, and the tiny server as an installed vLLM; no Docker answers.

    Its path always has the same length, so that lines break where they did.
    """
    folder = Path(tempfile.mkdtemp(prefix="p", dir="/tmp"))
    place = Workplace(folder, folder / "models" / "tiny", prefect_server.environment)
    place.environment["DOCKER_HOST"] = f"unix://{folder}/none"
    (folder / "engines").mkdir()
    installed_engine(place, Path(shutil.copy(lifecycle_program, folder / "engines")), "ok")
    shutil.copytree(tiny_llama, place.model)
    (folder / "deployments").mkdir()
    (folder / "fleet.yaml").rename(folder / "deployments" / "fleet.yaml")
    yield place
    place.close()
    shutil.rmtree(folder)
