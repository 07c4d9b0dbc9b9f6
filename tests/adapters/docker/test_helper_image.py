"""A connection is not kept idle while the helper's image is pulled."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.adapters.docker.connection import connection
from moorage.adapters.docker.helper_image import ensure_helper_image
from moorage.images.image import Image
from tests.builders import a_host, an_image
from tests.scripted_daemon import ScriptedDaemon, serving


@pytest.mark.parametrize("given", [True, False])
def test_while_an_image_is_pulled_no_connection_is_open(
    monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    pulled = an_image(reference="helper:1")
    scripted = ScriptedDaemon()
    scripted.answers["GET json"] = (404, {"message": "No such image: helper:1"})
    with serving(scripted) as access, connection(access.url, 10) as daemon:

        def pull(_: Image, **__: Any) -> Image:
            assert daemon.is_open is False
            return pulled

        monkeypatch.setattr("moorage.adapters.registry.pinning.present_image", pull)
        host = a_host().model_copy(update={"address": access.url})
        found = ensure_helper_image(host, "helper:1", 10, daemon if given else None)
        assert found == pulled.portable
