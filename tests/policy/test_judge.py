"""What a policy refuses, rule by rule, however it is written."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.common.failures import Cause, ExitCode
from moorage.inventory.fleet import Fleet
from moorage.policy.judge import allowed_hosts, as_violations, size_findings, violations
from moorage.policy.names import OFFICIAL_IMAGES, SAFE_OPTIONS, has_image, is_below, refused_words
from moorage.policy.request import Channel, PolicyRefused, Request, Submission, Usage
from moorage.policy.rules import EffectivePolicy, Policy, Rules
from tests.builders import a_spec

API, CLI = Submission(channel=Channel.API), Submission(channel=Channel.CLI)
ROOTS = ("/home/models",)
SHELL = ["/bin/sh", "-c", "id"]
OPEN = {
    "registries": ["*"],
    "commands": True,
    "packages": True,
    "args": ["*"],
    "env": ["*"],
    "variables": ["*"],
    "privileged": True,
    "host_network": True,
    "ipc": ["private", "shareable", "host"],
    "capabilities": ["*"],
    "groups": ["*"],
    "trust_remote_code": True,
}

CUSTOM = {"name": "custom", "runtime": "process", "command": SHELL}
OVERRIDES = {"architectures": ["X"], "auto_map": {"AutoModel": "evil/repo--m.E"}}
ON_RAY = {"name": "custom", "application": {"import_path": "os:system"}}
HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("commands", {"engine": CUSTOM}),
    ("commands", {"engine": {"name": "transformers", "command": SHELL}}),
    ("commands", {"engine": {"name": "vllm", "entrypoint": SHELL}}),
    (
        "commands",
        {"engine": {"entrypoint": SHELL, "image": "vllm/vllm-openai"}},
    ),
    ("commands", {"engine": ON_RAY, "placement": {"cluster": "ray-a"}}),
    ("args", {"engine": {"name": "triton", "triton": {"grpc": True}}}),
    (
        "args",
        {"engine": {"name": "triton", "triton": {"server_args": ["--log-file=/evil"]}}},
    ),
    (
        "commands",
        {
            "engine": {"application": {"runtime_env": {"pip": ["evil"]}}},
            "placement": {"cluster": "ray-a"},
        },
    ),
    (
        "commands",
        {
            "engine": {"application": {"args": {"engine_kwargs": {"trust_remote_code": True}}}},
            "placement": {"cluster": "ray-a"},
        },
    ),
    ("args", {"engine": {"name": "vllm", "vllm": {"hf_overrides": OVERRIDES}}}),
    ("packages", {"engine": {"name": "vllm", "packages": ["evil==1"]}}),
    ("registries", {"engine": {"name": "vllm", "image": "evil.example.com/vllm/vllm-openai"}}),
    ("registries", {"engine": {"name": "vllm", "image": "evil/vllm-openai:v0.32.0"}}),
    ("registries", {"engine": {"name": "vllm", "image": "vllm/vllm-openai-evil"}}),
    ("registries", {"engine": {"name": "vllm", "image": "localhost/vllm/vllm-openai"}}),
    ("privileged", {"engine": {"container": {"privileged": True}}}),
    ("host_network", {"engine": {"container": {"network": "host"}}}),
    ("ipc", {"engine": {"container": {"ipc": "host"}}}),
    ("ipc", {"engine": {"container": {"ipc": "shareable"}}}),
    ("capabilities", {"engine": {"container": {"capabilities": ["SYS_ADMIN"]}}}),
    ("groups", {"engine": {"container": {"groups": ["docker"]}}}),
    ("trust_remote_code", {"trust_remote_code": True}),
    *(
        ("env", {"engine": {"env": {name: "x"}}})
        for name in (
            *("LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "PATH", "VLLM_PLUGINS", "CC", "HOME"),
            *("VLLM_SERVER_DEV_MODE", "VLLM_ALLOW_INSECURE_SERIALIZATION", "HF_ENDPOINT"),
            *("NCCL_NET_PLUGIN", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "https_proxy"),
            *("PIP_INDEX_URL", "LMCACHE_CONFIG_FILE", "TRITON_PTXAS_PATH", "vllm_logging_level"),
        )
    ),
    ("env", {"secrets": {"VLLM_PLUGINS": "a-block"}}),
    ("env", {"sleep_level": 1}),
    ("env", {"lora_updates": {"max": 4}}),
    ("env", {"secrets": {"PIP_INDEX_URL": "a-block"}}),
    *(
        ("args", {"engine": {"name": "vllm", "args": [line]}})
        for line in (
            *("--worker-extension-cls evil.X", "--middleware evil.x", "--middlew evil.x"),
            *("--tool-parser-plugin /tmp/x.py", "--reasoning-parser-plugin=/tmp/x.py"),
            *("--logits-processors evil:X", "--logits_processors evil:X", "--logits-p evil:X"),
            *("--trust-remote-code", "--trust_remote_code", "--trust", "--tr"),
            *('--hf-overrides {"a": 1}', "--hf-overrides.auto_map x", "--hf-o x"),
            *("--tokenizer-mode custom", "--code-revision x", "--chat-template /etc/passwd"),
            *("--model /etc", "--tokenizer /etc", "--config /tmp/x.yaml", "--load-format pt"),
            *("--worker-cls evil.X", "--scheduler-cls evil.X", "--lora-modules a=/etc"),
            *('--speculative-config {"model": "/etc"}', "--distributed-executor-backend evil.X"),
            *('--kv-transfer-config {"kv_connector_module_path": "evil"}', "--api-key"),
            *("--allowed-local-media-path /", "--download-dir /etc", "--ssl-keyfile /etc/x"),
            *("--host 0.0.0.0", "--uds /tmp/x", "-cc.x=1", "-O3", "--no-trust-remote-code"),
            *("@/etc/passwd", "/etc", "--seed 1 @/etc/passwd", "--an-option-of-tomorrow"),
        )
        if line != "--api-key"
    ),
]


def request(spec: dict[str, Any], submission: Submission = API, **more: Any) -> Request:
    return Request(spec=a_spec(**spec), submission=submission, roots=ROOTS, **more)


def rules_of(found: Any) -> set[str]:
    return {one.rule for one in found}


@pytest.mark.parametrize(("rule", "spec"), HOSTILE, ids=[json.dumps(one) for _, one in HOSTILE])
def test_what_runs_or_opens_something_does_not_come_through_the_api(
    rule: str, spec: dict[str, Any]
) -> None:
    found = violations(EffectivePolicy(), request(spec))
    assert f"api.{rule}" in rules_of(found)
    assert all(one.file == "the default policy" for one in found)


@pytest.mark.parametrize(("rule", "spec"), HOSTILE, ids=[json.dumps(one) for _, one in HOSTILE])
def test_the_command_line_and_an_open_policy_may_all_of_it(rule: str, spec: dict[str, Any]) -> None:
    assert violations(EffectivePolicy(), request(spec, CLI)) == ()
    opened = EffectivePolicy(policy=Policy.model_validate({"api": OPEN}))
    assert violations(opened, request(spec)) == ()
    closed = {**OPEN, rule: Rules.model_fields[rule].default}
    one_closed = EffectivePolicy(policy=Policy.model_validate({"api": closed}), file="/p.yaml")
    (first, *rest) = violations(one_closed, request(spec))
    assert {first.rule, *rules_of(rest)} == {f"api.{rule}"}
    assert first.file == "/p.yaml"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"engine": {"name": "vllm", "args": ["--max-num-seqs 64", "--max_model_len=8192"]}},
        {"engine": {"name": "vllm", "args": ["-tp 2", "--no-enable-prefix-caching", "--seed -1"]}},
        {"engine": {"name": "vllm", "image": "vllm/vllm-openai:v0.32.0"}},
        {"engine": {"name": "vllm", "image": "docker.io/vllm/vllm-openai-cpu:v0.32.0"}},
        {"engine": {"name": "vllm", "image": "Index.Docker.io/vllm/vllm-openai"}},
        {"engine": {"env": {"VLLM_LOGGING_LEVEL": "DEBUG"}}, "secrets": {"HF_TOKEN": "hf-team"}},
        {"engine": {"name": "vllm", "vllm": {"gpu_memory_utilization": 0.5}}},
        {"engine": {"name": "llama.cpp", "llama_cpp": {"reasoning_budget": 0}}},
        {"engine": {"custom": "ours", "name": "custom"}},
        {"engine": {"name": "transformers", "runtime": "process"}},
    ],
)
def test_ordinary_specs_come_through_the_api(spec: dict[str, Any]) -> None:
    assert violations(EffectivePolicy(), request(spec)) == ()


def test_a_typed_setting_is_judged_like_its_option_and_named_by_its_field() -> None:
    spec = {"engine": {"name": "vllm", "vllm": {"hf_overrides": OVERRIDES}}}
    (found,) = violations(EffectivePolicy(), request(spec))
    assert (found.rule, found.field) == ("api.args", "engine.vllm.hf_overrides")


def test_a_secret_may_be_a_block_but_no_variable_of_the_worker_that_is_not_listed() -> None:
    spec = {"secrets": {"HF_TOKEN": "PREFECT_API_AUTH_STRING"}}
    (found,) = violations(
        EffectivePolicy(), request(spec, variables=frozenset({"PREFECT_API_AUTH_STRING"}))
    )
    assert (found.rule, found.field) == ("api.variables", "secrets.HF_TOKEN")
    assert violations(EffectivePolicy(), request(spec)) == ()
    listed = request({"secrets": {"HF_TOKEN": "HF_TOKEN"}}, variables=frozenset({"HF_TOKEN"}))
    assert violations(EffectivePolicy(), listed) == ()


def test_all_violations_are_told_at_once_and_survive_prefect() -> None:
    spec = {"engine": {**CUSTOM, "env": {"CC": "x"}}, "trust_remote_code": True}
    failure = PolicyRefused(violations(EffectivePolicy(), request(spec)))
    assert failure.cause is Cause.POLICY_REFUSED
    assert failure.cause.exit_code is ExitCode.BAD_INPUT
    assert "`api.commands` of the default policy" in failure.detail
    assert len(failure.detail.splitlines()) == 3
    assert pickle.loads(pickle.dumps(failure)).violations == failure.violations


WORDS = st.lists(
    st.one_of(
        st.sampled_from(["--trust-remote-code", "--middleware", "--worker-cls", "--config", "@x"]),
        st.sampled_from(sorted(SAFE_OPTIONS)),
        st.from_regex(r"--?[a-z][a-z_.-]{0,20}(=[a-z0-9./-]{0,5})?", fullmatch=True),
        st.from_regex(r"[a-z0-9/@]{1,8}", fullmatch=True),
    ),
    max_size=5,
)


@given(WORDS)
def test_no_option_passes_that_is_not_on_the_list(entries: list[str]) -> None:
    refused = set(refused_words(("safe",), entries))
    for word in entries:
        name = word.partition("=")[0].partition(".")[0].replace("_", "-")
        if word.startswith("-") and not {name, name.replace("--no-", "--", 1)} & SAFE_OPTIONS:
            assert any(one.startswith(word.partition("=")[0]) for one in refused)


IMAGE = r"([a-z0-9.]{1,9}(:[0-9]{2,4})?/)?[a-z0-9]{1,6}(/[a-z0-9]{1,6}){0,2}"


@given(st.from_regex(IMAGE, fullmatch=True))
def test_no_image_passes_that_lies_elsewhere(image: str) -> None:
    ours = image.startswith("hub.example.com/team/") or image == "hub.example.com/team"
    assert has_image(("hub.example.com/team",), image, Fleet()) is ours


@pytest.mark.parametrize(
    ("prefix", "image", "allowed"),
    [
        ("docker.io", "python", True),
        ("docker.io/library", "python:3.12", True),
        ("python", "python", True),
        ("vllm", "vllm/vllm-openai", True),
        ("vllm", "vllm-evil/vllm-openai", False),
        ("hub.example.com:5000/", "hub.example.com:5000/a/b", True),
        ("hub.example.com", "hub.example.com:5000/a/b", False),
        ("hub.example.com", "hub.example.com.evil.com/a", False),
        ("docker.io", "docker.io:443/a/b", False),
        ("localhost:5000", "localhost:5000/x@sha256:" + "0" * 64, True),
    ],
)
def test_a_registry_or_a_part_of_it(prefix: str, image: str, allowed: bool) -> None:
    assert has_image((prefix,), image, Fleet()) is allowed


def test_images_of_the_workers_fleet_are_official() -> None:
    fleet = Fleet.model_validate(
        {"engines": {"vllm": {"versions": {"1.0": {"image": "hub.example.com/acme/vllm:7"}}}}}
    )
    spec = {"engine": {"name": "vllm", "image": "hub.example.com/acme/vllm:8"}}
    assert violations(EffectivePolicy(), request(spec, fleet=fleet)) == ()
    assert rules_of(violations(EffectivePolicy(), request(spec))) == {"api.registries"}
    assert "vllm/vllm-openai" in OFFICIAL_IMAGES


@pytest.mark.parametrize(
    ("rule", "value", "spec"),
    [
        ("digests", True, {"engine": {"name": "vllm", "image": "vllm/vllm-openai:v1"}}),
        ("runtimes", ["docker"], {}),
        ("runtimes", ["docker"], {"engine": {"runtime": "process"}}),
        ("runtimes", ["docker", "process"], {"placement": {"cluster": "ray-a"}}),
        ("hosts", ["gpu-*"], {"placement": {"accelerators": ["local:cuda:0"]}}),
        ("hosts", ["gpu-*"], {"placement": {"cluster": "ray-a"}}),
        ("hosts", ["gpu-*"], {}),
        ("host_labels", {"pool": ["batch"]}, {"placement": {"host_labels": {"pool": "live"}}}),
        ("host_labels", {"pool": ["*"]}, {}),
        ("replicas", 2, {"replicas": 3}),
        ("accelerators", 4, {"replicas": 3, "placement": {"accelerators": 2}}),
        ("owner_replicas", 4, {"replicas": 3}),
        ("owner_accelerators", 4, {"placement": {"accelerators": 3}}),
    ],
)
@pytest.mark.parametrize("submission", [API, CLI])
def test_every_other_rule_refuses_on_either_side(
    rule: str, value: object, spec: dict[str, Any], submission: Submission
) -> None:
    written = Policy.model_validate({submission.channel.value: {rule: value}})
    wanted = request(spec, submission, others=Usage(replicas=2, accelerators=2))
    found = violations(EffectivePolicy(policy=written), wanted)
    assert rules_of(found) == {f"{submission.channel}.{rule}"}
    assert violations(EffectivePolicy(), wanted) == ()


def test_a_fleet_without_an_allowed_host_is_named_by_its_hosts() -> None:
    fleet = Fleet.model_validate({"hosts": [{"name": "a"}, {"name": "b"}]})
    written = EffectivePolicy(policy=Policy(api=Rules(hosts=("gpu-*",))))
    (found,) = violations(written, request({}, fleet=fleet))
    assert (found.field, found.found) == ("fleet.hosts", "'a, b'")


def test_hosts_that_a_rule_leaves_out_are_taken_out_of_the_fleet() -> None:
    hosts = [{"name": "a", "labels": {"pool": "batch"}}, {"name": "b"}]
    fleet = Fleet.model_validate({"hosts": hosts})
    left = allowed_hosts(Rules(host_labels={"pool": ("batch",)}), fleet)
    assert [host.name for host in left.hosts] == ["a"]
    assert allowed_hosts(Rules(), fleet) is fleet


def test_what_is_placed_counts() -> None:
    rules = Rules(accelerators=2, owner_accelerators=3)
    held, others = Usage(replicas=1, accelerators=2), Usage(accelerators=2)
    policy = EffectivePolicy(policy=Policy(api=rules))
    found = as_violations(policy, Channel.API, size_findings(rules, held, others))
    assert rules_of(found) == {"api.owner_accelerators"}
    assert [one.allowed for one in found] == ["3 at most for all models of an owner"]


@pytest.mark.parametrize(
    ("folder", "below"),
    [("/a", True), ("/a/b", True), ("/ab", False), ("/", False), ("/b/a", False)],
)
def test_a_folder_below_a_root(folder: str, below: bool) -> None:
    assert is_below(("/a",), folder) is below
    assert is_below(("/",), folder)


def test_a_source_outside_of_the_roots_is_refused_with_its_field() -> None:
    wanted = request({}, folders=(("lora[0].source", "/etc"), ("source", "/home/models/x")))
    (found,) = violations(EffectivePolicy(), wanted)
    assert (found.rule, found.field, found.found) == ("api.file_roots", "lora[0].source", "'/etc'")


def test_nothing_safe_names_a_file_a_class_or_code() -> None:
    suspicious = ("plugin", "cls", "-path", "-dir", "template", "file", "config", "remote", "load")
    named = [one for one in SAFE_OPTIONS if any(part in one for part in suspicious)]
    harmless = {
        *("--chat-template-content-format", "--default-chat-template-kwargs"),
        *("--override-generation-config", "--pooler-config", "--max-parallel-loading-workers"),
        *("--kv-offloading-backend", "--kv-offloading-size", "--use-tqdm-on-load"),
        *("--cpu-offload-gb", "--enable-server-load-tracking"),
    }
    assert set(named) <= harmless


def test_every_safe_option_is_one_of_some_vllm() -> None:
    known = {
        option
        for schema in shipped_schemas()
        for argument in schema.arguments
        for option in argument.options
    }
    assert known >= SAFE_OPTIONS - {"--reasoning-budget"}  # that one is of llama.cpp
