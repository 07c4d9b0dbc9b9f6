"""What a form offers as specs of the site."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moorage.adapters.files.site_specs import load_site_spec, site_spec_names
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure

SPEC = "name: tiny\nsource: hf://org/tiny\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the site's policy names."""
    found = tmp_path / "deployments"
    found.mkdir()
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"api: {{spec_folders: [{found}]}}\n")
    monkeypatch.setenv("MOORAGE_POLICY", str(policy))
    monkeypatch.setenv("MOORAGE_PROJECT", str(tmp_path))
    return found


def test_only_what_is_meant_as_a_spec_is_offered(folder: Path) -> None:
    files = {
        "tiny": SPEC,
        "mistaken": f"{SPEC}replicas: many\n",
        "cage": "hosts: [{name: local}]\n",
        "odd": f"{SPEC}hosts: []\n",
        "rules": "api: {own_fleet: true}\n",
        "list": "[1, 2]\n",
        "broken": "name: [\n",
    }
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "left.yaml").symlink_to(folder / "nothing")
    assert site_spec_names(Settings()) == ["mistaken", "tiny"]
    with pytest.raises(Failure, match="no spec 'cage' at this site"):
        load_site_spec("cage", Settings())


def test_a_file_that_has_become_a_spec_is_offered(folder: Path) -> None:
    file = folder / "tiny.yaml"
    file.write_text("name: tiny\n")
    assert site_spec_names(Settings()) == []
    file.write_text(SPEC)
    os.utime(file, ns=(0, 0))
    assert site_spec_names(Settings()) == ["tiny"]
