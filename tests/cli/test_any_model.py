"""Models as a person names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli.any_model import source_named, spec_or_source
from moorage.cli.options import existing
from moorage.common.failures import Failure


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
        *(("known", ""), ("deployments/known.yaml", ""), ("other.yml", ""), ("-", "")),
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


def test_who_deploys_a_source_hears_how_to_write_its_spec() -> None:
    with pytest.raises(Failure) as caught:
        existing(Path("org/repo"))
    assert "`moorage init NAME org/repo` writes one" in caught.value.suggestion
