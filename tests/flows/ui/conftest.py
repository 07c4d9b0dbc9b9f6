from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flows.ui.browser import Browser, browsing
from tests.prefect_server import PrefectServer


@pytest.fixture(scope="module")
def browser(served: PrefectServer) -> Iterator[Browser]:
    """A browser that looks at the server."""
    with browsing(served.url.removesuffix("/api"), served.login) as found:
        yield found
