"""Specs and fleets that somebody wrote to do harm: each is refused, at the field that is wrong."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.common.failures import Failure
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Rules
from moorage.engines.schema.check import check_likely
from moorage.inventory.fleet import Fleet
from moorage.inventory.fleet_engines import ImageName, VersionName
from moorage.inventory.snapshot import Program
from moorage.reports.problems import problems_of
from moorage.spec import EngineName, ModelSpec
from moorage.spec.patterns import (
    AcceleratorId,
    FilePath,
    Folder,
    Name,
    PackageName,
    Revision,
    SecretName,
    SecretVariable,
    Source,
    UrlPath,
)
from tests.builders import ON_CPU, a_host, an_image
from tests.engines.planning import planned

INSTALLED = Program(engine=EngineName.TRANSFORMERS, path="/opt/bin/transformers", version="5.23.0")
RULES = ENGINES[EngineName.VLLM].argument_rules or Rules(title="vLLM")
TOKEN = "hf_" + "aB3" * 11
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc"


def problems(model: type[BaseModel], content: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(content)
    return {found.path: str(found) for found in problems_of(caught.value, model)}


SPECS: list[tuple[str, dict[str, Any]]] = [
    # Ways out of a folder
    ("name", {"name": ".."}),
    ("name", {"name": "a/../b"}),
    ("name", {"name": "tiny\n"}),
    ("source", {"source": "hf://org/.."}),
    ("source", {"source": "hf://org/a..b"}),
    ("source", {"source": "hf://../tiny"}),
    ("source", {"source": "file:///models/../../etc"}),
    ("source", {"source": "file:///models//tiny"}),
    ("source", {"source": "file:///models/a\nb"}),
    ("source", {"source": "file:///"}),
    ("source", {"source": "file:///etc"}),
    ("source", {"source": "file:///proc/self"}),
    ("source", {"source": "file:///run/secrets"}),
    ("source", {"source": "file:///var/run/docker"}),
    ("source", {"source": "file://relative"}),
    ("lora[0].source", {"lora": [{"name": "a", "source": "file:///a/../../etc"}]}),
    ("lora[0].source", {"lora": [{"name": "a", "source": "file:///etc"}]}),
    ("lora[0].name", {"lora": [{"name": "../a", "source": "file:///a"}]}),
    ("lora[0].name", {"lora": [{"name": "a=/etc", "source": "file:///a"}]}),
    (
        "speculative.model",
        {"speculative": {"method": "eagle3", "tokens": 1, "model": "file:///a/.."}},
    ),
    ("revision", {"revision": "refs/../../x"}),
    ("revision", {"revision": "a//b"}),
    ("revision", {"revision": "a/./b"}),
    ("revision", {"revision": "/etc/passwd"}),
    ("engine.version", {"engine": {"version": "0.1/../2"}}),
    ("readiness.probe.path", {"readiness": {"probe": {"path": "/../admin"}}}),
    ("readiness.probe.path", {"readiness": {"probe": {"path": "http://elsewhere/"}}}),
    ("placement.accelerators[0]", {"placement": {"accelerators": ["../x:cuda:0"]}}),
    # Words that would be options
    ("name", {"name": "--help"}),
    ("source", {"source": "hf://-org/tiny"}),
    ("source", {"source": "hf://org/-tiny"}),
    ("revision", {"revision": "--upload-pack=x"}),
    ("revision", {"revision": "main --x"}),
    ("lora[0].revision", {"lora": [{"name": "a", "source": "hf://o/a", "revision": "-x"}]}),
    ("engine.version", {"engine": {"version": "-1"}}),
    ("engine.image", {"engine": {"image": "--privileged"}}),
    ("engine.image", {"engine": {"image": "a -v /:/host"}}),
    ("engine.image", {"engine": {"image": "https://registry/x"}}),
    ("engine.image", {"engine": {"image": "../x"}}),
    ("engine.image", {"engine": {"image": "a;id"}}),
    ("engine.image", {"engine": {"image": "registry/x@sha256:12"}}),
    ("engine.packages[0]", {"engine": {"packages": ["--index-url=http://x"]}}),
    ("engine.packages[0]", {"engine": {"packages": ["git+https://x/y"]}}),
    ("engine.packages[0]", {"engine": {"packages": ["a; os_name"]}}),
    ("engine.command", {"engine": {"command": ["--x", "y"]}}),
    ("engine.command", {"engine": {"command": [""]}}),
    ("engine.entrypoint", {"engine": {"entrypoint": ["-c", "id"]}}),
    ("engine.args", {"engine": {"args": ["--a 'b"]}}),
    ("engine.args", {"engine": {"args": ["--"]}}),
    ("engine.args[1]", {"engine": {"args": ["--x", "a\0b"]}}),
    ("engine.container.groups[0]", {"engine": {"container": {"groups": ["a --privileged"]}}}),
    ("engine.container.capabilities[0]", {"engine": {"container": {"capabilities": ["ALL"]}}}),
    ("engine.container.ulimits.x=1", {"engine": {"container": {"ulimits": {"x=1": 1}}}}),
    # Variables that are not the user's, and secrets that are no names
    ("engine.env", {"engine": {"env": {"MOORAGE_WORKLOAD": "/x"}}}),
    ("engine.env", {"engine": {"env": {"BASH_ENV": "/x"}}}),
    ("engine.env", {"engine": {"env": {"IFS": "/"}}}),
    ("engine.env", {"engine": {"env": {"LD_AUDIT": "/x.so"}}}),
    ("engine.env.A", {"engine": {"env": {"A": "b\0c"}}}),
    ("engine.env.A=B", {"engine": {"env": {"A=B": "c"}}}),
    ("secrets.LD_PRELOAD", {"secrets": {"LD_PRELOAD": "X"}}),
    ("secrets.PYTHONPATH", {"secrets": {"PYTHONPATH": "X"}}),
    ("secrets.PATH", {"secrets": {"PATH": "X"}}),
    ("secrets.HF_TOKEN", {"secrets": {"HF_TOKEN": "../x"}}),
    ("secrets.HF_TOKEN", {"secrets": {"HF_TOKEN": "-x"}}),
]

IN_CLEAR: list[tuple[str, dict[str, Any]]] = [
    ("secrets.HF_TOKEN", {"secrets": {"HF_TOKEN": TOKEN}}),
    ("secrets.KEY", {"secrets": {"KEY": KEY}}),
    ("engine.env", {"engine": {"env": {"HF_TOKEN": "a-token-of-no-known-form"}}}),
    ("engine.env", {"engine": {"env": {"VLLM_API_KEY": "a-key"}}}),
    ("engine.env", {"engine": {"env": {"AWS_SECRET_ACCESS_KEY": "abcdef"}}}),
    ("engine.env", {"engine": {"env": {"HARMLESS": TOKEN}}}),
    ("engine.env", {"engine": {"env": {"PIP_INDEX_URL": "https://me:hush@index/simple"}}}),
    ("engine.args", {"engine": {"args": [f"--header {TOKEN}"]}}),
    ("engine.args", {"engine": {"args": ["--proxy=http://me:hush@proxy:1"]}}),
    ("engine.command", {"engine": {"command": ["vllm", "serve", "s3://me:hush@bucket/x"]}}),
    ("engine.entrypoint", {"engine": {"entrypoint": ["vllm", TOKEN]}}),
    ("engine.command", {"engine": {"command": ["acme", "--api-key", "a-key"]}}),
    ("engine.command", {"engine": {"command": ["acme", "--hf-token=a-token"]}}),
    ("engine", {"engine": {"name": "transformers", "args": ["--api-key a-key"]}}),
]

HOSTS: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": "../x"}),
    ("address", {"address": "ssh://-oProxyCommand=id"}),
    ("address", {"address": "ssh://-x@gpu"}),
    ("address", {"address": "ssh://-oProxyCommand@gpu"}),
    ("address", {"address": "ssh://me@-gpu"}),
    ("address", {"address": "ssh://me:hush@gpu"}),
    ("address", {"address": "ssh://me@gpu/sock:/elsewhere"}),
    ("address", {"address": "ssh://me@gpu/$(id)"}),
    ("address", {"address": "ssh://me@gpu/a'b"}),
    ("address", {"address": "ssh://me@gpu?key=OTHER"}),
    ("address", {"address": "tcp://me:hush@gpu:2376"}),
    ("address", {"address": "tcp://-gpu:2376"}),
    ("address", {"address": "http://gpu:2376"}),
    ("address", {"address": "unix:///a b"}),
    ("", {"address": "ssh://me@gpu/run/../etc/x"}),
    ("", {"address": "unix:///run/../etc/x"}),
    ("", {"address": "ssh://me@gpu:99999"}),
    ("", {"address": "tcp://gpu:2375"}),
    ("ssh.key", {"address": "ssh://gpu", "ssh": {"key": TOKEN}}),
    ("ssh.key", {"address": "ssh://gpu", "ssh": {"key": "../key"}}),
    ("ssh.known_hosts", {"address": "ssh://gpu", "ssh": {"known_hosts": "/a -oX=y"}}),
    ("ssh.known_hosts", {"address": "ssh://gpu", "ssh": {"known_hosts": "/a/../b"}}),
    ("tls.certificates", {"address": "tcp://gpu:1", "tls": {"certificates": "/../x"}}),
    ("store", {"store": "/models/../../etc"}),
    ("store", {"store": "/"}),
    ("store", {"store": "/etc/moorage"}),
    ("store", {"store": "/a:/etc:rw"}),
    ("store", {"store": "/a,target=/etc"}),
    ("bind", {"bind": "elsewhere.example.com"}),
    ("bind", {"bind": "999.1.1.1"}),
    ("interface", {"interface": "-x"}),
    ("interface", {"interface": "eth0 --x"}),
    ("ports", {"ports": "1-2 --x"}),
]

FLEETS: list[tuple[str, dict[str, Any]]] = [
    ("helper_image", {"helper_image": "--privileged"}),
    ("helper_image", {"helper_image": "a;id"}),
    ("registries.default", {"registries": {"default": "https://mirror"}}),
    ("registries.default", {"registries": {"default": "me:hush@mirror"}}),
    ("registries.default", {"registries": {"default": "mirror/../x"}}),
    ("registries.insecure[0]", {"registries": {"insecure": ["-x"]}}),
    ("engines", {"engines": {"../x": {}}}),
    ("engines.versions", {"engines": {"vllm": {"versions": {"-1": {}}}}}),
]

VERSIONS: list[tuple[str, dict[str, str]]] = [
    ("image", {"image": "-x"}),
    ("entrypoint", {"entrypoint": "--x y"}),
    ("run_command", {"run_command": "{{model_path}} --api-key a-key"}),
    ("run_command", {"run_command": f"{{{{model_path}}}} --token {TOKEN}"}),
]

LOGINS: list[tuple[str, dict[str, str]]] = [
    ("password", {"password": TOKEN}),
    ("username", {"username": "me:hush"}),
    ("registry", {"registry": "https://me:hush@registry"}),
]


@pytest.mark.parametrize(("path", "change"), SPECS, ids=str)
def test_a_hostile_spec_is_refused_at_its_field(path: str, change: dict[str, Any]) -> None:
    assert path in problems(ModelSpec, {"name": "tiny", "source": "hf://org/tiny", **change})


@pytest.mark.parametrize(("path", "change"), IN_CLEAR, ids=[path for path, _ in IN_CLEAR])
def test_a_secret_in_clear_is_refused_and_not_repeated(path: str, change: dict[str, Any]) -> None:
    content = {"name": "tiny", "source": "hf://org/tiny", **change}
    message = problems(ModelSpec, content)[path]
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate(content)
    for text in (message, str(caught.value), repr(caught.value)):
        assert not any(word in text for word in (TOKEN, "hush", "abc", "a-token", "a-key"))


@pytest.mark.parametrize(("path", "change"), HOSTS, ids=str)
def test_a_hostile_host_is_refused_at_its_field(path: str, change: dict[str, Any]) -> None:
    host = {"name": "gpu", "bind": "10.0.0.1", **change}
    assert f"hosts[0].{path}".rstrip(".") in problems(Fleet, {"hosts": [host]})


@pytest.mark.parametrize(("path", "change"), FLEETS, ids=str)
def test_a_hostile_fleet_is_refused_at_its_field(path: str, change: dict[str, Any]) -> None:
    assert path in problems(Fleet, change)


@pytest.mark.parametrize(("field", "change"), VERSIONS, ids=str)
def test_a_hostile_version_is_refused_at_its_field(field: str, change: dict[str, str]) -> None:
    found = problems(Fleet, {"engines": {"vllm": {"versions": {"1": change}}}})
    assert any(path.endswith(field) for path in found)
    assert TOKEN not in str(found)


@pytest.mark.parametrize(("field", "change"), LOGINS, ids=[field for field, _ in LOGINS])
def test_a_hostile_login_is_refused_at_its_field(field: str, change: dict[str, str]) -> None:
    login = {"registry": "registry", "username": "me", "password": "NAME", **change}
    found = problems(Fleet, {"registries": {"logins": [login]}})
    assert f"registries.logins[0].{field}" in found
    assert TOKEN not in str(found)


@pytest.mark.parametrize(
    "change",
    [
        {"engine": {"env": {"LD_PRELOAD": "/usr/lib/libtcmalloc.so"}}},
        {"engine": {"env": {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}}},
        {"engine": {"env": {"TOKEN_PATH": "/x", "PIP_INDEX_URL": "https://index/simple"}}},
        {"engine": {"image": "[::1]:5000/team/vllm_openai:v0.32.0"}},
        {"engine": {"image": f"vllm/vllm-openai@sha256:{'a' * 64}"}},
        {"engine": {"image": f"sha256:{'a' * 64}"}},
        {"source": "file:///dev/shm/models/tiny"},
        {"source": "file:///srv/models/my model, v1"},
    ],
    ids=str,
)
def test_what_is_usual_is_not_taken_for_hostile(change: dict[str, Any]) -> None:
    assert ModelSpec.model_validate({"name": "tiny", "source": "hf://org/tiny", **change})


WORDS = st.text(string.ascii_letters + string.digits + "-_./:=@ \n\0'\"$;%", max_size=10)
VALUES: dict[str, TypeAdapter[str]] = {
    str(kind): TypeAdapter(kind)
    for kind in (
        *(AcceleratorId, FilePath, Folder, ImageName, Name, PackageName, Revision),
        *(SecretName, SecretVariable, Source, UrlPath, VersionName),
    )
}


@settings(max_examples=300, deadline=None)
@example(text="/:-", more="{}")
@given(
    text=st.one_of(WORDS, WORDS.map("/{}".format), WORDS.map("-{}".format)),
    more=st.sampled_from(["{}", "hf://org/{}", "hf://{}/x", "file:///{}", "h:{}:0", "a:{}"]),
)
def test_no_accepted_value_can_be_taken_for_an_option_or_leave_its_line(
    text: str, more: str
) -> None:
    for kind, adapter in VALUES.items():
        try:
            found = adapter.validate_python(more.format(text))
        except ValidationError:
            continue
        assert found.isprintable()
        assert not found.startswith("-")
        if kind != str(UrlPath):  # no program is given one, and a colon separates nothing there
            assert not any(part.startswith("-") for part in found.split(":")[1:2])
        assert "/../" not in f"{found}/"


@settings(max_examples=60, deadline=None)
@given(name=WORDS, version=WORDS, context=st.integers(), port=st.integers(-1, 70_000))
def test_no_accepted_spec_makes_an_option_of_a_value(
    name: str, version: str, context: int, port: int
) -> None:
    wish = {"name": name, "engine": {"version": version}, "context": context, "port": port}
    kept = {field: value for field, value in wish.items() if _is_accepted(field, value)}
    (container,) = planned(kept, a_host(bind="10.0.0.7"), an_image()).containers
    called = str(kept.get("name", "tiny"))
    assert container.argv[:3] == ("vllm", "serve", f"/models/{called}")
    for flag in container.command[1:]:
        option, *values = flag.tokens
        assert option.startswith("--")
        assert not any(value.startswith("-") for value in values), flag


def _is_accepted(field: str, value: object) -> bool:
    try:
        ModelSpec.model_validate({"name": "tiny", "source": "hf://org/tiny", field: value})
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("option", ["--host 0.0.0.0", "--port=1", "--served-model-name x"])
def test_arguments_do_not_open_an_engine_elsewhere(option: str) -> None:
    spec = ModelSpec.model_validate(
        {"name": "tiny", "source": "hf://org/tiny", "engine": {"name": "vllm", "args": [option]}}
    )
    with pytest.raises(Failure, match="moorage decides how the engine is reached"):
        check_likely(spec.engine, RULES, [None], shipped_schemas)


@pytest.mark.parametrize("option", ["--host 0.0.0.0", "--port=1"])
def test_nor_do_those_of_transformers(option: str) -> None:
    wish = {"engine": {"name": "transformers", "runtime": "process", "args": [option]}}
    with pytest.raises(Failure, match="would move the engine away"):
        planned(wish | {"placement": ON_CPU}, a_host(programs=(INSTALLED,)))
