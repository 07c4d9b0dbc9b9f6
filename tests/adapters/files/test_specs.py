from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.adapters.files.specs import (
    FLEET_FILE,
    STDIN,
    InvalidFile,
    load_fleet,
    load_hosts,
    load_spec,
    load_specs,
)
from moorage.adapters.files.written_specs import write_specs
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.spec import ModelSpec
from tests.builders import a_spec

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


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for text, name in ((b"name: tiny\nsource: file://models/tiny\n", "tiny"), (b"x" * 2**23, "")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        if name:
            assert load_spec(STDIN).source == f"file://{tmp_path}/models/tiny"
            continue
        with pytest.raises(InvalidFile, match="is larger than"):
            load_spec(STDIN)


def test_mistakes_on_standard_input_have_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"name: tiny\nsource: hf://org/tiny\nengine:\n  nmae: vllm\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    with pytest.raises(InvalidFile, match=r"-:4:3: engine\.nmae: unknown key"):
        load_spec(STDIN)


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


def test_the_home_of_a_user_who_does_not_exist_is_a_folder_like_others(write: Write) -> None:
    path = write("name: tiny\nsource: file://~nosuchuser/tiny\n")
    assert load_spec(path).source == f"file://{path.parent}/~nosuchuser/tiny"


def test_a_directory_without_a_name_is_refused(write: Write) -> None:
    failure = refusal(write("name: tiny\nsource: file://\n"))
    assert "source: found 'file://'; allowed: hf://org/repo" in failure.detail


def test_every_mistake_is_told_at_once_with_the_file(write: Write) -> None:
    path = write("nmae: tiny\nsource: hf://org/tiny\nengine: {name: vlm}\n")
    failure = refusal(path)
    assert isinstance(failure, InvalidFile)
    assert [problem.path for problem in failure.problems] == ["name", "nmae", "engine.name"]
    assert failure.detail.count(str(path)) == 3


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("name: x\nsource: hf://o/x\nengine:\n  nam: vllm\n", ":4:3: engine.nam: unknown key"),
        ("name: x\nsource: hf://o/x\nreplicas: many\n", ":3:1: replicas: found 'many'"),
        ("name: x\nsource: hf://o/x\nlora:\n  - {name: a}\n", ":4:5: lora[0].source: is required"),
        ("name: x\nsource: hf://o/x\nengine: &e {args: 1}\n", ":3:13: engine.args: "),
        ("name: x\n", ": source: is required"),
        ("name: x\n  source: y\n", ":2:9: not valid YAML: mapping values are not allowed here"),
        ("name:\n\tx: y\n", ":2:1: not valid YAML: a tab indents this line; YAML takes only"),
        ("name: x\nname: y\n", ':2:1: not valid YAML: found duplicate key "name"'),
    ],
)
def test_a_mistake_has_the_line_and_column_of_its_field(
    write: Write, text: str, placed: str
) -> None:
    path = write(text)
    assert f"{path}{placed}" in refusal(path).detail


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
        ("", "the file is empty"),
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
    assert failure.suggestion == f"Files in that folder: {there}."


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
        (
            "hosts: [{name: gpu-5}]\navoid:\n- host: gpu-5\n- host: gpu-05\n",
            "fleet.yaml:4:3: avoid[1].host: found gpu-05, which is no host of this fleet; keep it"
            " under `hosts`, too. Did you mean 'gpu-5'?",
        ),
        ("avoid: [{host: far-away}]\n", "avoid[0].host: found far-away, which is no host"),
    ],
)
def test_a_fleet_with_mistakes_is_refused(write: Write, text: str, words: str) -> None:
    assert words in refusal(write(text, FLEET_FILE), Cause.BAD_FLEET).detail


def test_a_given_fleet_file_must_be_there(tmp_path: Path) -> None:
    failure = refusal(tmp_path / FLEET_FILE, Cause.BAD_FLEET)
    assert "there is no such file" in failure.detail


def test_the_specs_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt", "fleet.yaml", "policy.yaml", "._b.yaml"):
        (tmp_path / name).write_text(f"name: of-{name}\nsource: hf://org/tiny\n")
    (tmp_path / ".#b.yaml").symlink_to("ann@desk.4711:1700000000")  # Emacs edits b.yaml
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
        load_specs([tmp_path / "missing.yaml", tmp_path])
    found = {Path(problem.file).stem for problem in refused.value.problems}
    assert found == {*wrong, "missing"}
    with pytest.raises(InvalidFile, match=r"one\.yaml: there is no such file\n.*two\.yaml: there"):
        load_specs([tmp_path / "one.yaml", tmp_path / "two.yaml"])


@pytest.mark.parametrize(
    ("fleets", "refused"),
    [
        ({"a": "w1", "b": "w1"}, ""),
        ({}, ""),
        ({"a": "w1", "b": "w2"}, r"found two fleets: .*/a/fleet\.yaml and .*/b/fleet\.yaml"),
        ({"a": "w1"}, r"two fleets: .*/a/fleet\.yaml and this machine, since there is no .*/b/fl"),
        ({"b": "w2"}, r"two fleets: this machine, since there is no .*/a/fleet\.yaml and .*/b/fl"),
    ],
)
def test_models_of_several_folders_share_one_fleet(
    tmp_path: Path, fleets: dict[str, str], refused: str
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    for name, host in fleets.items():
        (tmp_path / name / FLEET_FILE).write_text(f"hosts: [{{name: {host}}}]\n")
    (tmp_path / "own.yaml").write_text("hosts: [{name: w3}]\n")
    paths = [tmp_path / "a" / "one.yaml", tmp_path / "b"]
    assert [one.name for one in load_hosts(tmp_path / "own.yaml", paths).hosts] == ["w3"]
    if not refused:
        assert load_hosts(None, paths) == load_fleet(None, paths[0])
        return
    with pytest.raises(Failure, match=refused) as failure:
        load_hosts(None, paths)
    assert failure.value.cause is Cause.BAD_FLEET
    assert "--fleet" in failure.value.suggestion
