"""Where Prefect finds its settings, as Prefect itself sees it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prefect.settings import Settings

from moorage.adapters.prefect.settings_files import may_know_a_server, settings_in_files

URL = "https://prefect.example.com/api"
FILES = {
    ".env": f"PREFECT_API_URL={URL}",
    "prefect.toml": f'api.url = "{URL}"',
    "pyproject.toml": f'[tool.prefect]\napi.url = "{URL}"',
    "home/profiles.toml": f'active = "team"\n[profiles.team]\nPREFECT_API_URL = "{URL}"',
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command runs; Prefect's home is in it."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_setting_no_server_is_known(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\ndependencies = ["prefect"]\n')
    assert Settings().api.url is None
    assert not may_know_a_server(folder, os.environ)


@pytest.mark.parametrize("name", FILES)
def test_each_file_that_prefect_reads_is_known(folder: Path, name: str) -> None:
    before = settings_in_files(folder, os.environ)
    (folder / name).write_text(FILES[name])
    assert Settings().api.url == URL
    assert may_know_a_server(folder, os.environ)
    assert settings_in_files(folder, os.environ) != before


@pytest.mark.parametrize("content", ["[tool.prefect", "\xff prefect"])
def test_a_project_file_that_nobody_can_read_may_know_one(folder: Path, content: str) -> None:
    (folder / "pyproject.toml").write_text(content)
    assert may_know_a_server(folder, os.environ)


def test_a_variable_is_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", URL)
    assert may_know_a_server(folder, os.environ)
