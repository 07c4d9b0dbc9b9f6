"""A container that somebody else is removing is as good as removed, once it is gone."""

from __future__ import annotations

from typing import Any, cast

import pytest
import requests
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from moorage.adapters.docker.removal import remove_container


class Engine:
    """A container of which the removal is refused, and its end perhaps waited for."""

    def __init__(self, refusal: str, gone: bool = False) -> None:
        self.calls: list[str] = []
        self._refusal, self._gone = refusal, gone

    def remove(self, **_: Any) -> None:
        self.calls.append("remove")
        response = requests.Response()
        response.status_code = 409
        raise APIError("409", response=response, explanation=self._refusal)

    def wait(self, condition: str, timeout: float) -> None:
        assert timeout > 0
        self.calls.append(condition)
        if self._gone:
            raise NotFound("404")


@pytest.mark.parametrize("gone", [False, True])
def test_the_end_of_a_removal_under_way_is_waited_for(gone: bool) -> None:
    engine = Engine("removal of container 66d1b9 is already in progress", gone)
    remove_container(cast("Container", engine))
    assert engine.calls == ["remove", "removed"]


def test_another_refusal_is_told() -> None:
    engine = Engine("driver failed to remove root filesystem: device or resource busy")
    with pytest.raises(APIError, match="busy"):
        remove_container(cast("Container", engine))
    assert engine.calls == ["remove"]
