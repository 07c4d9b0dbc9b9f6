"""What is written reads back as the same, and takes the place of nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.files.specs import load_fleet, load_spec, load_specs
from moorage.adapters.files.written_specs import spec_text, write_fleet, write_specs
from moorage.common.failures import Failure
from tests.builders import a_spec

SPECS: list[dict[str, Any]] = [
    {},
    {"revision": "1e3", "context": 512, "replicas": 3, "port": 8000},
    {"engine": {"args": ["--a-flag 'two words'", '{"json": [1, "x"]}', "yes", "007", "a: b"]}},
    {"engine": {"env": {"A": "no", "B": "0o17", "C": "two\nlines\n", "D": " x ", "E": "#"}}},
    {"engine": {"image": "moorage/engine:1", "version": "0.30", "shm": "512MiB"}},
    {"engine": {"args": [f"--long {'word ' * 60}".strip()]}},
    {"placement": {"ram": "16GiB", "host_labels": {"pool": "on"}, "accelerator_kinds": ["*H100*"]}},
    {"source": "file:///srv/models/größe 1", "secrets": {"HF_TOKEN": "team-token"}},
    {"lora": [{"name": "poet", "source": "hf://org/poet", "revision": "v1"}]},
    {"readiness": {"deadlines": {"load_seconds": 7}}, "trust_remote_code": True},
]


@pytest.mark.parametrize("fields", SPECS)
def test_a_spec_that_is_written_reads_back_as_the_same(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    spec = a_spec(**fields)
    (file,) = write_specs(tmp_path, [spec], overwrite=False)
    assert load_spec(file) == spec
    assert load_spec(file).digest == spec.digest


def test_only_what_is_set_is_written() -> None:
    assert spec_text(a_spec(replicas=2)) == "name: tiny\nsource: hf://org/tiny\nreplicas: 2\n"


def test_no_model_takes_the_place_of_another_of_the_fleet_or_of_the_policy(tmp_path: Path) -> None:
    specs = [a_spec(name=name) for name in ("fleet", "model-fleet", "policy", "Tiny", "tiny")]
    files = write_specs(tmp_path, specs, overwrite=False)
    assert len({str(file).lower() for file in files}) == 5
    assert not {tmp_path / "fleet.yaml", tmp_path / "policy.yaml"} & set(files)
    assert sorted(found.name for found in load_specs([tmp_path])) == sorted(
        spec.name for spec in specs
    )


def test_a_file_that_says_something_else_is_kept(tmp_path: Path) -> None:
    mine = tmp_path / "tiny.yaml"
    mine.write_text("name: tiny # mine\n")
    others = [a_spec(name="another"), a_spec()]
    with pytest.raises(Failure, match="there is another text already"):
        write_specs(tmp_path, others, overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"], "none is written"
    write_specs(tmp_path, others, overwrite=True)
    assert load_spec(mine) == a_spec()


def test_a_folder_that_cannot_be_written_is_told_and_not_taken_for_the_store(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="Not a directory") as refused:
        write_specs(tmp_path / "file" / "folder", [a_spec()], overwrite=False)
    assert "MOORAGE_HOME" not in refused.value.suggestion


def test_a_fleet_is_copied_with_its_comments(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts: # all of them\n- name: gpu-1\n")
    copy = write_fleet(tmp_path / "exported", file, overwrite=False)
    assert copy.read_text() == file.read_text()
    assert load_fleet(copy) == load_fleet(file)
