from __future__ import annotations

from pathlib import Path
from typing import cast

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.config_files import QUIET_SECONDS, ConfigFiles
from tests.gateway.tables import backend, model, table


class StillAdmin:
    """An Envoy that takes everything at once, with requests in flight as the test says."""

    def __init__(self) -> None:
        self.active: dict[str, int] = {}

    def active_requests(self) -> dict[str, int]:
        return self.active

    def rejections(self, file: str) -> int:  # noqa: ARG002
        return 0

    def await_version(self, *_: object) -> None:
        pass


def test_a_release_keeps_its_cluster_until_its_last_request_was_a_while_ago(tmp_path: Path) -> None:
    now = [100.0]
    files, still = ConfigFiles(tmp_path, lambda: now[0]), StillAdmin()
    admin = cast(Admin, still)
    files.apply(table(model("llama", backend("llama-1", 40000))), None)
    files.apply(table(model("llama", backend("llama-2", 40001))), None)

    def clusters() -> bool:
        return "llama-1" in (tmp_path / "config" / "clusters.json").read_text()

    still.active = {"llama-1": 2}
    assert (files.prune(admin), clusters()) == ({"llama-1": 2}, True)
    now[0] += 60
    assert (files.prune(admin), clusters()) == ({"llama-1": 2}, True)
    still.active = {}  # one may wait for its next try
    now[0] += QUIET_SECONDS / 2
    assert (files.prune(admin), clusters()) == ({}, True)
    now[0] += QUIET_SECONDS
    assert (files.prune(admin), clusters()) == ({}, False)
    assert [one.releases for one in files.tables()] == [{"llama-2"}]
