from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from moorage.common.units import GIB
from moorage.inventory.fleet import Fleet
from moorage.spec import EngineName, EngineSpec, Mode, ModelSpec, RuntimeName, Strategy, slug
from tests.builders import a_spec


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside an annotation, and those inside of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    for part in getattr(annotation, "__args__", ()):
        yield from models_in(part)


def fields_of(model: type[BaseModel]) -> list[tuple[str, str]]:
    return [
        (f"{part.__name__}.{name}", field.description or "")
        for part in dict.fromkeys(models_in(model))
        for name, field in part.model_fields.items()
    ]


@pytest.mark.parametrize("source", ["s3://models", "s3://models/team/tiny-v1.0", "hf://a/b"])
def test_a_model_may_come_from_elsewhere(source: str) -> None:
    assert ModelSpec(name="tiny", source=source, revision="a" * 64).source == source


def test_a_name_and_a_source_are_enough() -> None:
    spec = ModelSpec(name="tiny", source="hf://org/tiny")
    assert (spec.engine.name, spec.engine.runtime) == (EngineName.AUTO, RuntimeName.AUTO)
    assert (spec.context, spec.port, spec.replicas) == ("auto", "auto", 1)
    assert (spec.mode, spec.placement.strategy) == (Mode.AUTO, Strategy.SPREAD)
    assert spec.placement.accelerators == spec.placement.ram == "auto"
    assert spec.readiness.probe.request
    assert not spec.trust_remote_code


NO_PACKAGES = (
    *("", "--index-url=http://x", "-r file", "a b", "a;b", "a @ http://x/a.whl", "a $(id)"),
    *("http://x/a.whl", "./a", "a==1 --pre", "a[x", "a==", "a==1; os_name=='nt'", "a==1\n-r f"),
)


@pytest.mark.parametrize(
    ("path", "description"), [*fields_of(ModelSpec), *fields_of(Fleet)], ids=lambda value: value
)
def test_every_field_is_described(path: str, description: str) -> None:
    assert description.endswith("."), f"{path} lacks a description"


@pytest.mark.parametrize("model", [ModelSpec, Fleet])
def test_the_schema_contains_every_nested_model(model: type[BaseModel]) -> None:
    nested = {part.__name__ for part in models_in(model)} - {model.__name__}
    assert len(nested) >= 3
    assert nested <= set(model.model_json_schema()["$defs"])


def test_a_size_may_be_written_as_number_or_text_and_the_schema_says_so() -> None:
    assert a_spec(engine={"shm": "2GiB"}) == a_spec(engine={"shm": 2 * GIB})
    shm = ModelSpec.model_json_schema()["$defs"]["EngineSpec"]["properties"]["shm"]
    assert [kind["type"] for kind in shm["anyOf"]] == ["integer", "string"]


def test_memory_is_estimated_unless_it_is_stated() -> None:
    assert set(a_spec().memory.model_dump().values()) == {None}
    assert a_spec(memory={"claim": "20GiB", "nccl": 0}).memory.claim == 20 * GIB
    assert a_spec().concurrency == "auto"


def test_a_spec_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        a_spec().name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"contxt": 4096},
        {"engine": {"nam": "vllm"}},
        {"readiness": {"deadlines": {"load": 5}}},
        {"name": "-starts-with-a-dash"},
        {"name": "x" * 64},
        {"name": "with space"},
        {"source": "org/tiny"},
        {"source": "hf://org/../tiny"},
        {"source": "hf://../tiny"},
        {"source": "s3://"},
        {"source": "s3://Models/tiny"},
        {"source": "s3://models/a b"},
        {"source": "s3://models/tiny?x=1"},
        {"source": "https://hub/org/tiny"},
        {"source": "file://models/tiny"},
        {"revision": ".."},
        {"revision": "../main"},
        {"revision": "refs/../../secret"},
        {"revision": "/etc/passwd"},
        {"revision": ""},
        {"context": 0},
        {"context": "lots"},
        {"port": 0},
        {"port": 65536},
        {"replicas": 0},
        {"engine": {"name": "vlm"}},
        {"engine": {"version": "latest"}},
        {"engine": {"image": "--privileged"}},
        {"engine": {"env": {"NO SPACE": "1"}}},
        {"engine": {"shm": -1}},
        *({"engine": {"packages": [name]}} for name in NO_PACKAGES),
        {"engine": {"packages": ["a"], "runtime": "process"}},
        {"engine": {"packages": ["a"], "container": {"user": 1000}}},
        {"engine": {"entrypoint": ["a"], "command": ["b"]}},
        {"engine": {"entrypoint": []}},
        {"engine": {"custom": "acme"}},
        {"engine": {"name": "custom"}},
        {"engine": {"name": "custom", "command": ["serve"]}},
        {"engine": {"name": "custom", "image": "acme:1"}},
        {"engine": {"container": {"group": 1000}}},
        {"engine": {"container": {"user": -1}}},
        {"engine": {"container": {"ulimits": {"files": 1}}}},
        {"engine": {"container": {"ulimits": {"nofile": -2}}}},
        {"engine": {"container": {"capabilities": ["ALL"]}}},
        {"engine": {"container": {"privileged": True, "capabilities": ["SYS_NICE"]}}},
        {"engine": {"container": {"restart": "no"}}},
        {"engine": {"container": {"groups": ["a b"]}}},
        {"engine": {"shm": "1GiB", "container": {"ipc": "host"}}},
        {"engine": {"runtime": "process", "container": {"network": "host"}}},
        {"placement": {"accelerators": -1}},
        {"placement": {"accelerators": ["gpu-1/0"]}},
        {"placement": {"accelerators": []}},
        {"placement": {"ram": "-1GiB"}},
        {"concurrency": 0},
        {"speculative": {}},
        {"speculative": {"method": "ngram"}},
        {"speculative": {"method": "eagle3", "tokens": 3}},
        {"speculative": {"method": "eagle3", "tokens": 3, "model": "drafts/eagle"}},
        {"speculative": {"method": "eagle3", "tokens": 3, "model": "file://drafts/eagle"}},
        {"speculative": {"method": "ngram", "tokens": 3, "revision": "main"}},
        {"speculative": {"method": "ngram", "tokens": 3, "ngram_min": 4, "ngram_max": 2}},
        {"speculative": {"method": "mtp", "tokens": 0}},
        {"lora": [{"name": "poet", "source": "poet"}]},
        {"lora": [{"name": "poet", "source": "file://poet"}]},
        {"lora": [{"name": "poet", "source": "hf://org/poet", "revision": "../x"}]},
        {"lora": [{"name": "poet", "source": "hf://org/poet", "files": ""}]},
        {"lora": [{"name": "tiny", "source": "file:///poet"}]},
        {"lora_updates": {"max": 0}},
        {"lora_updates": {"rank": 513}},
        {
            "lora": [
                {"name": "poet", "source": "file:///a"},
                {"name": "poet", "source": "file:///b"},
            ]
        },
        {"extended_kv_cache": {"ram": 0}},
        {"extended_kv_cache": {"ratio": 0}},
        {"memory": {"claim": 0}},
        {"memory": {"context": "-1GiB"}},
        {"readiness": {"probe": {"path": "health"}}},
        {"secrets": {"HF_TOKEN": "a value, not a name"}},
        {"engine": {"api_key_variable": "KEY"}, "secrets": {"OTHER": "TEAM_KEY"}},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_spec(**change)


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/1", "a" * 40, "a..b"])
def test_branches_tags_and_commits_are_revisions(revision: str) -> None:
    assert a_spec(revision=revision).revision == revision


def test_defaults_that_are_written_out_do_not_change_the_digest() -> None:
    written = a_spec(
        engine={"name": "auto", "shm": "10GiB", "args": []},
        readiness={"deadlines": {"load_seconds": 900}},
        replicas=1,
        mode="auto",
    )
    assert written.digest == a_spec().digest


@pytest.mark.parametrize(
    "change", [{"context": 4096}, {"engine": {"args": ["-O3"]}}, {"name": "other"}], ids=str
)
def test_another_wish_has_another_digest(change: dict[str, Any]) -> None:
    assert a_spec(**change).digest != a_spec().digest


@given(st.dictionaries(st.from_regex("[B-H]{1,6}", fullmatch=True), st.text("ab=\n", max_size=3)))
def test_equal_specs_have_equal_digests(env: dict[str, str]) -> None:
    backwards = dict(reversed(env.items()))
    spec, same = a_spec(engine={"env": env}), a_spec(engine={"env": backwards})
    assert spec == same
    assert spec.digest == same.digest


def test_a_spec_survives_its_json() -> None:
    spec = a_spec(context=4096, placement={"accelerators": ["gpu-1:cuda:0"], "ram": "16GiB"})
    again = ModelSpec.model_validate_json(spec.model_dump_json())
    assert (again, again.digest) == (spec, spec.digest)


@pytest.mark.parametrize(
    ("name", "key"), [("tiny", "tiny"), ("Llama-3.1_8B", "llama-3-1-8b"), ("a..b", "a-b")]
)
def test_the_slug_is_fit_for_an_artifact_key(name: str, key: str) -> None:
    assert slug(name) == key


@pytest.mark.parametrize(
    "package",
    ["name", "name==1.2", "Name.x_y-z", "a[b,c-d] >=1, <2", "a==1.*", "a~=1.0", "a===1!2+local"],
)
def test_a_package_is_a_name_with_extras_and_versions(package: str) -> None:
    assert a_spec(engine={"packages": [package]}).engine.packages == (package,)


@pytest.mark.parametrize(
    "engine",
    [
        {"command": ["serve"], "image": "acme:1"},
        {"command": ["serve"], "runtime": "process"},
        {"custom": "acme"},
        {"custom": "acme", "image": "acme:2", "packages": ["a"]},
    ],
    ids=str,
)
def test_a_custom_engine_says_what_is_run(engine: dict[str, Any]) -> None:
    assert a_spec(engine={"name": "custom", **engine}).engine.name == EngineName.CUSTOM


@pytest.mark.parametrize(
    "replace", [{"strategy": "canary"}, {"canary_seconds": 5}, {"linger_seconds": 0}]
)
def test_how_a_release_takes_over_does_not_change_what_serves(replace: dict[str, Any]) -> None:
    assert a_spec(replace=replace).digest == a_spec().digest


@pytest.mark.parametrize(
    ("readiness", "wrong"),
    [
        ({"prompts": [{"expect": "x"}]}, "either `prompt` or `messages`"),
        ({"prompts": [{"prompt": "a", "messages": [{"content": "b"}]}]}, "either `prompt`"),
        (
            {"prompts": [{"prompt": "a", "expect": "("}]},
            "a regular expression, and this is none",
        ),
        ({"compare": {"min_tokens_per_second_ratio": 0.8}}, "it is measured with `prompts`"),
    ],
)
def test_a_gate_asks_one_thing_and_compares_what_it_asks(
    readiness: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(ValidationError, match=wrong):
        a_spec(readiness=readiness)


def test_a_gate_is_part_of_what_is_asked_for() -> None:
    readiness = {"prompts": [{"prompt": "2+2=", "expect": "4"}]}
    assert a_spec(readiness=readiness).digest != a_spec().digest


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("args", ["--chat-template {data_dir}/chat.jinja"]),
        ("args", ["--chat-template={data_dir}/chat.jinja"]),
        ("args", ["--template", "/x/{{data_dir}}/y"]),
        ("command", ["serve", "{ data_dir }/x"]),
        ("entrypoint", ["{data_dir}/serve"]),
    ],
)
def test_the_placeholder_of_a_directory_that_no_engine_sees_is_refused(
    field: str, words: list[str]
) -> None:
    engine = {"name": "vllm", field: words}
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate({"name": "tiny", "source": "hf://org/tiny", "engine": engine})
    (error,) = caught.value.errors()
    assert error["loc"] == ("engine", field)
    assert all(word in error["msg"] for word in ("{{model_path}}", "`lora`", "speculative.model"))


def test_other_names_in_braces_are_left_for_the_engine() -> None:
    words = ("--chat-template", "{{ messages }}{data_dirs}", "--log-config {port}")
    assert EngineSpec(args=words).args == words
