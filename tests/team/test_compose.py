"""compose.yaml, as data: what is started, who reaches it, where its secrets come from."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.e2e.workplace import REPOSITORY

TEXT = (REPOSITORY / "compose.yaml").read_text()
WRITTEN: dict[str, Any] = YAML(typ="safe", pure=True).load(TEXT)
SERVICES: dict[str, dict[str, Any]] = WRITTEN["services"]
EXAMPLE = (REPOSITORY / "deployments" / "team.env.example").read_text()
DATABASES = ("PREFECT_DATABASE", "MOORAGE_DATABASE")
VARIABLE = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")


def test_it_starts_postgresql_and_then_prefect_on_it() -> None:
    assert list(SERVICES) == ["postgres", "prefect"]
    assert SERVICES["prefect"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    settings = SERVICES["prefect"]["environment"]
    assert settings["PREFECT_SERVER_DATABASE_DRIVER"] == "postgresql+asyncpg"
    assert settings["PREFECT_SERVER_DATABASE_HOST"] == "postgres"


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_of_one_version_and_says_when_it_is_ready(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[\w/]+:\d[\w.-]+", service["image"])
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["healthcheck"]["retries"] * int(service["healthcheck"]["interval"][:-1]) <= 180
    assert "privileged" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_only_this_machine_reaches_it(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


def test_every_secret_is_asked_for_and_none_is_written() -> None:
    secrets = {name for name, how, _ in VARIABLE.findall(TEXT) if how == "?"}
    assert secrets == {f"{one}_PASSWORD" for one in ("POSTGRES", "PREFECT_API", *DATABASES)}
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or VARIABLE.fullmatch(value)
    filled = dict(re.findall(r"^(\w+)=(.*)$", EXAMPLE, re.MULTILINE))
    assert {name for name, value in filled.items() if not value} == secrets
    assert {name for name, how, _ in VARIABLE.findall(TEXT) if how == "-"} <= filled.keys()
    assert "/deployments/team.env\n" in (REPOSITORY / ".gitignore").read_text()


def test_the_version_of_prefect_is_the_one_that_moorage_asks_for() -> None:
    project = (REPOSITORY / "pyproject.toml").read_text()
    wanted = re.search(r'"prefect>=([\d.]+),', project)
    assert wanted
    assert SERVICES["prefect"]["image"] == f"prefecthq/prefect:{wanted[1]}-python3.11"


def test_both_databases_are_made_by_the_script_of_the_plain_way() -> None:
    mounted = [volume.split(":")[0] for volume in SERVICES["postgres"]["volumes"]]
    script = REPOSITORY / "scripts" / "team" / "databases.sql"
    assert "./scripts/team/databases.sql" in mounted
    for name in DATABASES:
        assert f"{name}_PASSWORD" in SERVICES["postgres"]["environment"]
        assert (
            f"\\getenv {name.split('_')[0].lower()}_password {name}_PASSWORD" in script.read_text()
        )
