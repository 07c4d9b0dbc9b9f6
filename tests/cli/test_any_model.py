"""Models as a person names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli.any_model import source_named, spec_or_source
from moorage.cli.options import existing, folder_of_specs
from moorage.common.failures import Cause, Failure


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("model", "bare", "deployments"):
        (tmp_path / name).mkdir()
    (tmp_path / "model/config.json").touch()
    (tmp_path / "model/notes.yaml").touch()
    (tmp_path / "tiny.gguf").touch()
    (tmp_path / "deployments/known.yaml").write_text("name: known\nsource: hf://a/b\n")
    return tmp_path


@pytest.mark.parametrize(
    ("model", "source"),
    [
        *(("org/repo", "org/repo"), ("org/repo:Q4_0", "org/repo:Q4_0")),
        *(("hf://org/repo", "hf://org/repo"), ("s3://bucket/x", "s3://bucket/x")),
        *(("model", "file://HERE/model"), ("./bare", "file://HERE/bare")),
        *(("file://model", "file://HERE/model"), ("tiny.gguf", "file://HERE/tiny.gguf")),
        *(("file:///none", "file:///none"), ("known", ""), ("deployments/none", "")),
        ("file://~nosuchuser/x", "file://HERE/~nosuchuser/x"),
        *(("deployments/known.yaml", ""), ("other.yml", ""), ("-", "")),
        pytest.param("deployments", "", id="a folder of specs is no model"),
    ],
)
def test_a_source_is_known_by_its_form(folder: Path, model: str, source: str) -> None:
    assert source_named(model) == source.replace("HERE", str(folder))


@pytest.mark.parametrize(
    ("model", "name", "files"),
    [
        *(("known", "known", None), ("org/Tiny-Model", "tiny-model", "auto")),
        ("org/tiny:Q4_0", "tiny", "*Q4_0*"),
    ],
)
def test_a_source_is_a_spec_with_defaults(model: str, name: str, files: str | None) -> None:
    spec, path = spec_or_source(model)
    assert (spec.name, spec.files, path) == (name, files, Path(f"deployments/{name}.yaml"))


@pytest.mark.parametrize(
    ("path", "detail", "advice"),
    [
        ("tiny.gguf", "is a model, not a spec", "`moorage init NAME tiny.gguf` writes its spec"),
        ("model/notes", "does not exist", "Did you mean 'model/notes.yaml'?"),
        ("org/repo", "does not exist", "`moorage run org/repo` tries it."),
    ],
)
def test_what_is_no_spec_is_answered_with_what_would_do(
    path: str, detail: str, advice: str
) -> None:
    with pytest.raises(Failure, match=detail) as caught:
        existing(Path(path))
    assert caught.value.cause is Cause.BAD_SPEC
    assert advice in caught.value.suggestion


def test_a_folder_without_a_spec_cannot_be_deployed(folder: Path) -> None:
    (folder / "bare/fleet.yaml").touch()
    with pytest.raises(Failure, match="bare is a folder without a spec") as caught:
        folder_of_specs(Path("bare"))
    assert "`moorage init NAME bare`" in caught.value.suggestion
    assert folder_of_specs(Path("deployments")) == Path("deployments")


def test_a_name_in_a_folder_without_deployments_says_where_one_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "bare")
    with pytest.raises(Failure, match="nor known exists") as caught:
        existing(Path("known"))
    assert f"There is no folder deployments in {folder / 'bare'}" in caught.value.suggestion
