from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.adapters.files.specs import load_spec
from moorage.cli.app import app
from moorage.reports.field_reference import FILES
from moorage.reports.file_schema import file_schema
from moorage.reports.spec_template import SUGGESTED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["init", *words])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("org/tiny", ("hf://org/tiny", None)),
        ("org/tiny-GGUF:Q4_K_M", ("hf://org/tiny-GGUF", "*Q4_K_M*")),
        ("s3://bucket/tiny", ("s3://bucket/tiny", None)),
        ("hf://org/repo.gguf", ("hf://org/repo.gguf", None)),
        ("s3://bucket/a.gguf", ("s3://bucket/a.gguf", None)),
    ],
)
def test_a_new_file_holds_the_source_and_is_a_spec(
    folder: Path, source: str, written: tuple[str, str | None]
) -> None:
    init("tiny", source)
    spec = load_spec(folder / "deployments" / "tiny.yaml")
    assert (spec.name, (spec.source, spec.files)) == ("tiny", written)


@pytest.mark.parametrize(
    "source", ["./none", "/no/where", "~/none", "models/none", "org/none.gguf"]
)
def test_a_path_that_leads_nowhere_is_no_repository(folder: Path, source: str) -> None:
    (folder / "models").mkdir()
    assert f"no file or folder {source}" in init("tiny", source, code=2).output
    assert not (folder / "deployments").exists()


def test_a_path_stays_readable(folder: Path) -> None:
    (folder / "wörk dir").mkdir()
    init("tiny", "wörk dir")
    assert f'source: "file://{folder}/wörk dir"' in (folder / "deployments/tiny.yaml").read_text()


@pytest.mark.parametrize("name", ["true", "123", "1e3", "no", "0x1f", "null"])
def test_a_name_stays_a_text(folder: Path, name: str) -> None:
    init(name, "org/tiny")
    assert load_spec(folder / "deployments" / f"{name}.yaml").name == name


@pytest.mark.parametrize("name", ["fleet", "policy"])
def test_a_file_that_is_no_specs_is_not_written(folder: Path, name: str) -> None:
    assert "Choose another name" in init(name, "org/tiny", code=2).output
    assert not (folder / "deployments").exists()


def test_a_folder_is_written_whole(folder: Path) -> None:
    (folder / "model").mkdir()
    found = json.loads(init("tiny", "model", "--json").output)
    assert found["spec"]["source"] == f"file://{folder}/model"
    assert load_spec(Path(found["file"])).source == f"file://{folder}/model"


def test_each_comment_becomes_a_field_once_its_mark_is_gone(folder: Path) -> None:
    init("tiny", "org/tiny")
    path = folder / "deployments" / "tiny.yaml"
    text = path.read_text()
    for name in SUGGESTED:
        text = text.replace(f"# {name}: ", f"{name}: ")
    path.write_text(text)
    assert load_spec(path).revision == "main"
    assert all(f"\n{name}: " in text for name in SUGGESTED)


@pytest.mark.parametrize(("name", "source"), [("tiny", "http://x/y"), ("ti ny", "org/tiny")])
def test_nothing_is_written_that_is_no_spec(folder: Path, name: str, source: str) -> None:
    init(name, source, code=2)
    assert not (folder / "deployments").exists()


def test_a_new_file_names_its_schema_and_it_is_there(folder: Path) -> None:
    init("tiny", "org/tiny")
    written = folder / "deployments" / "tiny.yaml"
    modeline = written.read_text().splitlines()[0]
    named = written.parent / modeline.removeprefix("# yaml-language-server: $schema=")
    assert named.read_text() == file_schema("spec")
    for file in FILES:
        explained = CliRunner().invoke(app, ["explain", file, "--json-schema"]).output
        assert explained == named.with_name(f"{file}.json").read_text()


def test_a_schema_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "deployments").mkdir()
    (folder / "deployments" / ".schemas").write_text("")
    assert "deployments/.schemas: File exists" in init("tiny", "org/tiny", code=8).output


def test_a_file_that_is_there_stays(folder: Path) -> None:
    init("tiny", "org/tiny")
    before = (folder / "deployments" / "tiny.yaml").read_text()
    assert "exists" in init("tiny", "org/other", code=2).output
    assert (folder / "deployments" / "tiny.yaml").read_text() == before
