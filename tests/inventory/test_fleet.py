from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet, Host, at_site
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions

TYPES = ("cuda", "rocm")


def test_without_a_file_the_fleet_is_this_machine() -> None:
    (host,) = Fleet().hosts
    assert (host.name, host.address, host.bind) == ("local", "local", "127.0.0.1")
    assert host.runtimes == host.accelerators == host.ram == "auto"
    assert host.port_range == (40000, 40063)


@pytest.mark.parametrize("ports", ["1-65535", "8000-8000"])
def test_both_ends_of_the_ports_are_included(ports: str) -> None:
    assert "-".join(map(str, Host(name="a", ports=ports).port_range)) == ports


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ({"ports": "9-5"}, "ports 9-5 must ascend within 1-65535"),
        ({"ports": "0-5"}, "must ascend"),
        ({"ports": "60000-70000"}, "must ascend"),
        ({"ports": "8000"}, "pattern"),
        ({"address": "http://gpu-1:2375"}, "pattern"),
        ({"address": "ssh://-oProxyCommand=id"}, "pattern"),
        ({"address": "tcp://gpu-1:2375", "bind": "10.0.0.1"}, "tcp:// needs tls"),
        ({"address": "ssh://gpu-1"}, "bind 127.0.0.1 cannot be reached from here"),
        ({"address": "ssh://gpu-1", "bind": "10.0.0.1", "tls": {"certificates": "/x"}}, "tls is"),
        ({"ssh": {"key": "KEY"}}, "ssh says how ssh:// logs in"),
        ({"bind": "gpu-1.example"}, "pattern"),
        ({"runtimes": ["podman"]}, "docker"),
        ({"accelerators": [{"index": 0}]}, "memory"),
        (
            {"accelerators": [{"index": 0, "type": kind, "memory": "80GiB"} for kind in TYPES]},
            "the accelerator index 0 is used more than once",
        ),
        ({"accelerators": [{"index": 0, "memory": 80}]}, "without a unit it counts bytes"),
        ({"accelerators": [{"index": -1, "memory": "80GiB"}]}, "greater than or equal to 0"),
        ({"accelerators": [{"index": 0, "memory": "80GiB", "type": "CUDA"}]}, "pattern"),
        ({"reserve": {"vram": "1GiB"}}, "Extra inputs"),
    ],
    ids=str,
)
def test_a_host_that_makes_no_sense_is_refused(host: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Fleet.model_validate({"hosts": [{"name": "gpu-1", **host}]})


ENGINES = {"vllm": {"default_version": "0.31.0"}, "acme": {"versions": {"1": {"image": "a:1"}}}}


def test_engines_are_known_or_named_by_the_user() -> None:
    fleet = Fleet.model_validate({"engines": ENGINES})
    assert fleet.engines["vllm"].default_version == "0.31.0"
    assert fleet.engines["acme"].find_or_newest("") == ("1", EngineVersion(image="a:1"))
    assert fleet.engines["acme"].find("") is None


def test_the_newest_version_of_an_engine_is_found_by_value_not_by_letter() -> None:
    versions = {name: {"image": f"a:{name}"} for name in ("2.9", "2.10", "1.0")}
    engine = EngineVersions.model_validate({"versions": versions})
    assert engine.find_or_newest("") == ("2.10", EngineVersion(image="a:2.10"))


@pytest.mark.parametrize(
    ("engines", "why"),
    [
        ({"custom": {}}, "a name of its own"),
        ({"auto": {}}, "a name of its own"),
        ({"a b": {}}, "pattern"),
        ({"vllm": {"versions": {"latest": {}}}}, "pattern"),
        ({"vllm": {"versions": {"1": {"image": "--rm"}}}}, "pattern"),
        ({"vllm": {"versions": {"1": {"run_command": "a 'b"}}}}, "cannot be split into words"),
        ({"vllm": {"versions": {"1": {"entrypoint": 'a "b'}}}}, "cannot be split into words"),
        ({"vllm": {"default_version": "newest"}}, "pattern"),
    ],
    ids=str,
)
def test_an_engine_that_makes_no_sense_is_refused(engines: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Fleet.model_validate({"engines": engines})


def test_two_hosts_cannot_have_one_name() -> None:
    with pytest.raises(ValidationError, match="the host name a is used more than once"):
        Fleet(hosts=(Host(name="a"), Host(name="b"), Host(name="a")))


def test_a_fleet_has_hosts() -> None:
    with pytest.raises(ValidationError, match="at least 1"):
        Fleet(hosts=())


def test_one_remote_machine_has_one_name() -> None:
    hosts = [
        {"name": "a", "address": "ssh://gpu-1", "bind": "10.0.0.1"},
        {"name": "b", "address": "ssh://root@GPU-1:22", "bind": "10.0.0.1"},
    ]
    with pytest.raises(ValidationError, match="the machine gpu-1 has more than one name"):
        Fleet.model_validate({"hosts": hosts})


def test_the_way_to_a_host_is_one_line_without_secrets() -> None:
    host = Host(name="a", address="ssh://ops@gpu-1", bind="10.0.0.1", ssh={"key": "GPU_KEY"})
    assert host.access.url == "ssh://ops@gpu-1?key=GPU_KEY"


def a_host(name: str, **labels: str) -> Host:
    return Host(name=name, labels=labels)


FLEET = Fleet(hosts=(a_host("a", site="east"), a_host("b", site="west"), a_host("c", pool="x")))


@pytest.mark.parametrize(
    ("site", "names"), [("", "abc"), ("east", "ac"), ("west", "bc"), ("north", "c")]
)
def test_a_site_has_its_own_hosts_and_those_that_name_none(site: str, names: str) -> None:
    found = at_site(FLEET, site)
    assert "".join(host.name for host in found.hosts) == names
    assert found.model_copy(update={"hosts": FLEET.hosts}) == FLEET


def test_this_machine_is_at_every_site() -> None:
    assert at_site(Fleet(), "east") == Fleet()


def test_a_site_without_any_host_is_told_with_the_sites_that_there_are() -> None:
    fleet = Fleet(hosts=FLEET.hosts[:2])
    with pytest.raises(Failure, match=r"at the site north.*hosts at east, west only") as caught:
        at_site(fleet, "north")
    assert caught.value.cause is Cause.BAD_FLEET
    assert "work queue" in caught.value.suggestion
