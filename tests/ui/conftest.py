from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import installed_engine, lifecycle_program, tiny_llama
from tests.e2e.workplace import Workplace
from tests.flows.conftest import DEPLOYMENTS, Serving
from tests.prefect_server import PrefectServer, prefect_server
from tests.ui.browser import SECRET, Browser, browsing

__all__ = ["lifecycle_program", "prefect_server", "tiny_llama"]


@pytest.fixture(scope="module")
def workplace(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
) -> Iterator[Workplace]:
    """A home in which the tiny server is an installed vLLM: a form needs to say no more."""
    place = Workplace(tmp_path_factory.mktemp("ui"), tiny_llama, prefect_server.environment)
    place.environment["UI_SECRET"] = SECRET
    installed_engine(place, lifecycle_program, "ok")
    yield place
    place.close()


@pytest.fixture(scope="module")
def served(workplace: Workplace, prefect_server: PrefectServer) -> Iterator[PrefectServer]:
    """The server, with `moorage serve` beside it."""
    with Serving(workplace):
        workplace.wait_until(lambda: all(map(prefect_server.has_deployment, DEPLOYMENTS)))
        yield prefect_server


@pytest.fixture(scope="module")
def browser(served: PrefectServer) -> Iterator[Browser]:
    """A browser that looks at the server."""
    with browsing(served.url.removesuffix("/api"), served.login) as found:
        yield found
