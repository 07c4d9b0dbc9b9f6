from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from moorage.adapters.files.specs import absolute
from moorage.common.strict_yaml import YamlError, decode
from moorage.policy.rules import Policy
from moorage.reports.field_reference import FILES
from moorage.reports.file_schema import file_schema
from tests.fuzz import seeds
from tests.fuzz.mutations import mutated

REPOSITORY = Path(__file__).parents[2]
NAMED = {"name": "tiny", "source": "hf://org/tiny"}
MUTATIONS = 300


SEEDS: dict[str, list[Any]] = {
    "spec": json.loads(json.dumps(seeds.SPECS).replace("file://model", "file:///model")),
    "fleet": seeds.FLEETS,
    "policy": [Policy().model_dump(mode="json")],
}
"""Whole files that use most fields."""


@cache
def validator(file: str) -> Draft202012Validator:
    schema = json.loads(file_schema(file))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def examples() -> list[tuple[str, str, Any]]:
    """Each piece of YAML in the documents and in deployments/, as every file that it may be."""
    found = []
    for path in (REPOSITORY / "deployments").glob("*.yaml"):
        found.append((path.name, path.read_text()))
    for path in [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]:
        blocks = re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.S | re.M)
        found += [(f"{path.name}-{number}", text) for number, text in enumerate(blocks)]
    return [(file, name, content) for name, text in found for file, content in read(text)]


def read(text: str) -> list[tuple[str, Any]]:
    """The content of a file; what shows only some fields of a spec is completed."""
    try:
        content = decode(text.encode())
    except YamlError:
        return []
    if not isinstance(content, dict):
        return []
    spec = {**NAMED, **content}
    spec["source"] = absolute(spec["source"], REPOSITORY)
    return [("spec", spec), ("fleet", content), ("policy", content)]


def taken(file: str, content: Any) -> Any:
    """What moorage makes of a file, in JSON with its fields as they are; None = it is refused."""
    try:
        value = FILES[file][1].model_validate(content)
    except ValidationError:
        return None
    return value.model_dump(mode="json", exclude_unset=True)


def mistakes(file: str, content: Any) -> list[str]:
    return [f"{one.json_path}: {one.message[:200]}" for one in validator(file).iter_errors(content)]


def test_the_examples_of_the_documents_have_no_mistake() -> None:
    valid = [(file, name, content) for file, name, content in examples() if taken(file, content)]
    wrong = {(file, name): mistakes(file, content) for file, name, content in valid}
    assert {name: found for name, found in wrong.items() if found} == {}
    kinds = Counter(file for file, *_ in valid)
    assert kinds["spec"] >= 16
    assert kinds["fleet"] >= 6
    assert kinds["policy"] >= 3


@pytest.mark.parametrize("file", SEEDS)
def test_what_moorage_takes_the_schema_takes(file: str) -> None:
    """Numbers in quotes and the like are left out: moorage reads them, an editor may say so."""
    chance, accepted = Random(17), 0
    for content in SEEDS[file]:
        assert mistakes(file, content) == []
    for _ in range(MUTATIONS):
        mutant = json.loads(json.dumps(mutated(chance.choice(SEEDS[file]), chance)))
        if (written := taken(file, mutant)) is not None:
            accepted += 1
            assert mistakes(file, written) == [], mutant
    assert accepted > MUTATIONS / 100


@pytest.mark.parametrize(
    "fields",
    [
        {"engine": "vllm"},
        {"engine": {"name": "llama.cpp", "shm": "512MiB"}},
        {
            "engine": {
                "env": {"VLLM_LOGGING_LEVEL": "DEBUG"},
                "container": {"ulimits": {"stack": 1}},
            }
        },
        {"context": 4096, "port": "auto", "concurrency": "auto"},
        {"placement": {"ram": "1.5 GiB", "accelerators": ["gpu-1:cuda:0"]}},
        {"placement": {"ram": 1024, "accelerators": 0}},
        {"keep_alive": "1h30m"},
        {"keep_alive": "500ms"},
        {"keep_alive": "-1"},
        {"keep_alive": 0},
        {"source": "file://../models/tiny"},
        {"revision": None},
        {"labels": {"tier": "batch"}},
    ],
)
def test_short_forms_are_taken(fields: dict[str, Any]) -> None:
    assert mistakes("spec", {**NAMED, **fields}) == []


@pytest.mark.parametrize(
    ("file", "content", "place", "message"),
    [
        ("spec", {**NAMED, "contxt": 1}, "$", "'contxt' was unexpected"),
        ("spec", {"name": "tiny"}, "$", "'source' is a required property"),
        ("spec", {**NAMED, "engine": "vlm"}, "$.engine", "not valid under any"),
        ("spec", {**NAMED, "engine": {"runtim": "docker"}}, "$.engine", "not valid under any"),
        ("spec", {**NAMED, "mode": "chat"}, "$.mode", "is not one of"),
        ("spec", {**NAMED, "replicas": 0}, "$.replicas", "less than the minimum"),
        ("spec", {**NAMED, "keep_alive": "5 min"}, "$.keep_alive", "not valid"),
        ("spec", {**NAMED, "keep_alive": 300}, "$.keep_alive", "not valid"),
        ("spec", {**NAMED, "placement": {"ram": "16GB of RAM"}}, "$.placement.ram", "not valid"),
        ("spec", {**NAMED, "secrets": {"A B": "x"}}, "$.secrets", "does not match"),
        ("spec", {**NAMED, "name": "a b"}, "$.name", "does not match"),
        ("fleet", {"host": []}, "$", "'host' was unexpected"),
        ("fleet", {"hosts": []}, "$.hosts", "should be non-empty"),
        ("fleet", {"hosts": [{"name": "a", "ports": "40000"}]}, "$.hosts[0].ports", "not match"),
        ("fleet", {"registries": {"default": 5}}, "$.registries.default", "not valid"),
        ("policy", {"api": {"replicas": -1}}, "$.api.replicas", "not valid"),
        ("policy", {"cli": {"comands": True}}, "$.cli", "'comands' was unexpected"),
    ],
)
def test_typical_mistakes_are_found(file: str, content: Any, place: str, message: str) -> None:
    assert taken(file, content) is None
    (found,) = mistakes(file, content)
    assert found.startswith(f"{place}: ")
    assert message in found


@pytest.mark.parametrize("file", FILES)
def test_an_editor_has_a_text_for_every_field(file: str) -> None:
    schema = json.loads(file_schema(file))
    sections = [schema, *schema["$defs"].values()]
    fields = [field for section in sections for field in section.get("properties", {}).items()]
    # A section whose field says nothing else is described once, at its definition.
    assert [name for name, field in fields if not field.keys() & {"description", "$ref"}] == []
    assert all(section["description"] for section in sections)


@pytest.mark.parametrize("file", FILES)
def test_every_pattern_says_in_words_what_is_allowed(file: str) -> None:
    found = re.findall(r'"pattern": ("[^\n]*"),?\n([^}]*)}', file_schema(file))
    assert {pattern for pattern, others in found if "patternErrorMessage" not in others} == set()
    assert found


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "deployments").glob("*.yaml")), ids=lambda path: path.name
)
def test_an_editor_finds_the_schema_of_the_files_in_deployments(path: Path) -> None:
    modeline = path.read_text().splitlines()[0]
    schema = path.parent / modeline.removeprefix("# yaml-language-server: $schema=")
    assert schema.read_text() == file_schema("spec")
