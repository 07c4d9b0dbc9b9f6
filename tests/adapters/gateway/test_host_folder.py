"""The files of a gateway on another host, with the program that works on them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from moorage.adapters.gateway import folder_program
from moorage.adapters.gateway.access_log import AccessLog
from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.config_files import ConfigFiles
from moorage.adapters.gateway.host_channel import HostChannel
from moorage.adapters.gateway.host_folder import HostFolder
from moorage.common.failures import Failure
from moorage.gateway.envoy import ACCESS_LOG
from moorage.gateway.gateway import GatewayOptions, LogPosition
from moorage.gateway.programs import HOST_FOLDER
from tests.gateway.tables import backend, model, table


class NearChannel:
    """Asks the program in this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask(self, do: str, body: bytes = b"", **fields: Any) -> tuple[dict[str, Any], bytes]:
        return folder_program.answer(str(self._folder), {"do": do, **fields}, body)


def host_folder(volume: Path) -> HostFolder:
    return HostFolder(cast(HostChannel, NearChannel(volume)))


def test_the_configuration_is_in_the_volume_and_the_tables_stay_here(tmp_path: Path) -> None:
    volume, here = tmp_path / "volume", tmp_path / "here"
    volume.mkdir()
    files = ConfigFiles(here, host_folder(volume))
    assert not files.are_there()
    files.listen(GatewayOptions(bind="0.0.0.0"), None)
    files.apply(table(model("llama", backend("llama-1", 40000))), None)
    assert files.are_there()
    assert files.bootstrap == f"{HOST_FOLDER}/bootstrap.json"
    assert f'"{HOST_FOLDER}/config/clusters.json"' in (volume / "bootstrap.json").read_text()
    names = {path.name for path in (volume / "config").iterdir()}
    assert names == {"listeners.json", "clusters.json", "routes.json"}
    assert [path.name for path in here.iterdir()] == ["tables.json"]


def test_the_log_is_read_and_begun_anew_as_a_local_one(tmp_path: Path) -> None:
    file = tmp_path / ACCESS_LOG
    file.parent.mkdir()
    log = AccessLog(host_folder(tmp_path))
    assert log.read(LogPosition()) == ([], LogPosition())
    file.write_bytes(b"one\ntw")
    _, position = log.read(LogPosition())
    lines, position = log.read(position)
    assert lines == [b"one"]
    file.rename(file.with_suffix(".1"))
    assert log.read(position)[0] == []


def test_a_link_in_place_of_the_log_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / ACCESS_LOG
    file.parent.mkdir()
    file.symlink_to("/etc/passwd")
    log = AccessLog(host_folder(tmp_path))
    _, position = log.read(LogPosition())
    with pytest.raises(Failure, match="files of the gateway"):
        log.read(position)


def test_an_envoy_that_does_not_answer_is_not_ready(tmp_path: Path) -> None:
    admin = Admin(host_folder(tmp_path).admin())
    assert not admin.is_ready()
    with pytest.raises(Failure, match="Envoy does not answer"):
        admin.traffic()


@pytest.mark.parametrize("answer", [{}, {"inode": "1", "bytes": 2}, {"inode": 1, "bytes": None}])
def test_a_host_that_leaves_out_what_was_asked_ends_nothing(answer: dict[str, Any]) -> None:
    class Hostile:
        def ask(self, do: str, **_: Any) -> tuple[dict[str, Any], bytes]:
            assert do == "state"
            return answer, b""

    with pytest.raises(Failure, match="answers without"):
        HostFolder(cast(HostChannel, Hostile())).state("access.log")
