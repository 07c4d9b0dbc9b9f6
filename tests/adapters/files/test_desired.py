"""What is meant to run, as files that read back as the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.files.desired import load_specs, spec_text, write_fleet, write_specs
from moorage.adapters.files.specs import InvalidFile, load_fleet, load_spec
from moorage.common.failures import Cause, Failure
from moorage.spec import ModelSpec
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


def test_the_specs_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt", "fleet.yaml", "policy.yaml"):
        (tmp_path / name).write_text(f"name: of-{name}\nsource: hf://org/tiny\n")
    assert [spec.name for spec in load_specs([tmp_path])] == ["of-a.yml", "of-b.yaml"]
    both = [tmp_path / "b.yaml", tmp_path]
    assert [spec.name for spec in load_specs(both)] == ["of-b.yaml", "of-a.yml"]


def test_two_files_of_one_name_and_every_other_mistake_are_told(tmp_path: Path) -> None:
    for name, text in {"a": "", "b": "", "c": "replicas: 0\n", "d": "contxt: 1\n"}.items():
        (tmp_path / f"{name}.yaml").write_text(f"name: tiny\nsource: hf://org/tiny\n{text}")
    with pytest.raises(InvalidFile) as failure:
        load_specs([tmp_path])
    assert failure.value.cause == Cause.BAD_SPEC
    mistakes = [(Path(one.file).name, one.path) for one in failure.value.problems]
    assert mistakes == [("b.yaml", "name"), ("c.yaml", "replicas"), ("d.yaml", "contxt")]


def test_a_model_spec_is_what_is_read(tmp_path: Path) -> None:
    assert load_specs([]) == []
    with pytest.raises(Failure, match="no such file"):
        load_specs([tmp_path / "none.yaml"])
    assert isinstance(load_specs(write_specs(tmp_path, [a_spec()], overwrite=False))[0], ModelSpec)


def test_a_file_that_cannot_be_read_hides_no_mistake_of_the_others(tmp_path: Path) -> None:
    wrong = {"a": b"name: [", "b": b"\xff\xfe", "c": b"", "d": b"naem: tiny\n"}
    for name, content in wrong.items():
        (tmp_path / f"{name}.yaml").write_bytes(content)
    with pytest.raises(InvalidFile) as refused:
        load_specs([tmp_path])
    assert {Path(problem.file).stem for problem in refused.value.problems} == set(wrong)
