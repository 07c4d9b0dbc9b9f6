from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.adapters.files.specs import FLEET_FILE, InvalidFile, load_fleet, load_spec
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns its path."""

    def write(text: str, name: str = "tiny.yaml") -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def refusal(path: Path, cause: Cause = Cause.BAD_SPEC) -> Failure:
    with pytest.raises(Failure) as caught:
        load_spec(path) if cause is Cause.BAD_SPEC else load_fleet(path)
    assert caught.value.cause is cause
    assert str(path) in caught.value.detail
    return caught.value


def test_a_spec_is_read_from_yaml(write: Write) -> None:
    spec = load_spec(write("name: tiny\nsource: hf://org/tiny\nengine: {args: [-O3]}\n"))
    assert (spec.name, spec.source, spec.engine.args) == ("tiny", "hf://org/tiny", ("-O3",))


@pytest.mark.parametrize(
    ("source", "directory"),
    [("../models/tiny", "models/tiny"), ("tiny", "specs/tiny"), ("./tiny", "specs/tiny")],
)
def test_a_relative_directory_starts_at_the_file(
    tmp_path: Path, source: str, directory: str
) -> None:
    (tmp_path / "specs").mkdir()
    file = tmp_path / "specs" / "tiny.yaml"
    file.write_text(f"name: tiny\nsource: file://{source}\n")
    assert load_spec(file).source == f"file://{tmp_path.resolve() / directory}"


def test_so_do_the_directories_of_adapters_and_of_the_draft_model(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(
        "name: tiny\nsource: hf://org/tiny\n"
        "lora: [{name: poet, source: file://poet}, {name: far, source: hf://org/far}]\n"
        "speculative: {method: draft_model, tokens: 2, model: file://../small}\n"
    )
    spec, here = load_spec(file), tmp_path.resolve()
    assert [item.source for item in spec.lora] == [f"file://{here}/poet", "hf://org/far"]
    assert spec.speculative
    assert spec.speculative.model == f"file://{here.parent}/small"


@pytest.mark.parametrize("wrong", ["lora: [poet]", "lora: poet", "speculative: mtp"])
def test_what_is_no_adapter_and_no_draft_is_a_mistake_like_any_other(
    write: Write, wrong: str
) -> None:
    with pytest.raises(InvalidFile):
        load_spec(write(f"name: tiny\nsource: hf://org/tiny\n{wrong}\n"))


@pytest.mark.parametrize("source", ["/srv/models/tiny", "~/tiny"])
def test_an_absolute_directory_stays(write: Write, source: str) -> None:
    spec = load_spec(write(f"name: tiny\nsource: file://{source}\n"))
    assert spec.source == f"file://{Path(source).expanduser()}"


def test_a_directory_without_a_name_is_refused(write: Write) -> None:
    failure = refusal(write("name: tiny\nsource: file://\n"))
    assert "source: found 'file://'; allowed: hf://org/repo" in failure.detail


def test_every_mistake_is_told_at_once_with_the_file(write: Write) -> None:
    path = write("nmae: tiny\nsource: hf://org/tiny\nengine: {name: vlm}\n")
    failure = refusal(path)
    assert isinstance(failure, InvalidFile)
    assert [problem.path for problem in failure.problems] == ["name", "engine.name", "nmae"]
    assert failure.detail.count(str(path)) == 3


def test_the_mistakes_survive_a_pickle(write: Write) -> None:
    failure = refusal(write("name: tiny\n"))
    assert isinstance(failure, InvalidFile)
    again = pickle.loads(pickle.dumps(failure))
    assert (again.problems, str(again)) == (failure.problems, str(failure))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: [tiny\n", "not valid YAML"),
        ("name: tiny\nname: other\n", 'found duplicate key "name"'),
        ("engine: {args: [], args: []}\n", "duplicate key"),
        ("name: !!python/object:os.system x\n", "not valid YAML"),
        ("a: b: c\n", "not valid YAML"),
        ("name: 2001-99-99\n", "source: is required"),
        ("a: " + "[" * 5000, "a[0][0]"),
        ("[" * 5000, "nested more than 32 deep"),
        ("name: tiny\n---\nname: other\n", "not valid YAML"),
        ("", "must hold keys and values, found None"),
        ("- tiny\n", "must hold keys and values, found ['tiny']"),
        ("tiny\n", "must hold keys and values, found 'tiny'"),
    ],
)
def test_what_is_no_mapping_is_refused(write: Write, text: str, why: str) -> None:
    assert why in refusal(write(text)).detail


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refusal(tmp_path / "tiny.yaml").detail


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "Is a directory" in refusal(tmp_path).detail


def test_a_missing_file_is_told_with_its_neighbours(write: Write) -> None:
    there = write("name: tiny\n")
    failure = refusal(there.with_name("tinny.yaml"))
    assert "there is no such file" in failure.detail
    assert failure.suggestion == f"There are: {there}."


def test_a_missing_file_without_neighbours_gets_the_usual_advice(tmp_path: Path) -> None:
    assert "Correct the fields" in refusal(tmp_path / "tiny.yaml").suggestion


def test_without_a_fleet_file_the_fleet_is_this_machine(write: Write) -> None:
    assert load_fleet(None) == load_fleet(None, write("name: tiny\n")) == Fleet()


def test_a_fleet_file_beside_the_spec_is_found(write: Write) -> None:
    write("hosts: [{name: gpu-1}]\n", FLEET_FILE)
    assert [host.name for host in load_fleet(None, write("name: tiny\n")).hosts] == ["gpu-1"]


def test_a_given_fleet_file_wins(write: Write) -> None:
    write("hosts: [{name: gpu-1}]\n", FLEET_FILE)
    other = write("hosts: [{name: gpu-2}]\n", "other.yaml")
    assert [host.name for host in load_fleet(other, write("name: tiny\n")).hosts] == ["gpu-2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts: []\n", "at least 1 item"),
        ("hosts: [{nam: a}]\n", "Did you mean 'name'?"),
        ("- a\n", "must hold keys and values, found ['a']"),
    ],
)
def test_a_fleet_with_mistakes_is_refused(write: Write, text: str, words: str) -> None:
    assert words in refusal(write(text, FLEET_FILE), Cause.BAD_FLEET).detail


def test_a_given_fleet_file_must_be_there(tmp_path: Path) -> None:
    failure = refusal(tmp_path / FLEET_FILE, Cause.BAD_FLEET)
    assert "there is no such file" in failure.detail
