from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Failure
from moorage.engines.ray_serve import (
    MARK_LEDGER,
    MARK_RELEASE,
    AppStatus,
    ReplicaLog,
    app_state,
    with_application,
    without_application,
)

OURS = {"name": "moorage-tiny.v1", "route_prefix": "/tiny.v1", "import_path": "a:b"}


def an_application(**changes: Any) -> dict[str, Any]:
    """What Ray 2.60 tells of one application, shortened."""
    config = {
        "name": "other",
        "route_prefix": "/other",
        "import_path": "shop:build",
        "args": {"word": "hi"},
        "runtime_env": {"env_vars": {"KEY": "value"}},
        "deployments": [{"name": "A", "num_replicas": 2}],
    }
    values = {"status": "RUNNING", "message": "", "source": "declarative", "deployments": {}}
    return {**values, "deployed_app_config": config, **changes}


def details(**applications: dict[str, Any]) -> dict[str, Any]:
    return {
        "controller_info": {"node_ip": "192.0.2.2"},
        "proxy_location": "EveryNode",
        "http_options": {"host": "0.0.0.0", "port": 8000},
        "grpc_options": None,
        "proxies": {},
        "target_capacity": 50.0,
        "applications": applications,
    }


class TestConfig:
    """A PUT replaces the whole config, so everything else is sent along as it is."""

    def test_the_others_and_the_options_of_the_whole_are_kept_exactly(self) -> None:
        other = an_application()
        assert with_application(details(other=other), OURS) == {
            "proxy_location": "EveryNode",
            "http_options": {"host": "0.0.0.0", "port": 8000},
            "target_capacity": 50.0,
            "applications": [other["deployed_app_config"], OURS],
        }

    def test_one_of_the_same_name_is_replaced(self) -> None:
        old = an_application(deployed_app_config={**OURS, "args": {"old": True}})
        config = with_application(details(**{"moorage-tiny.v1": old}), OURS)
        assert config["applications"] == [OURS]

    def test_one_leaves_and_the_others_stay(self) -> None:
        mine = an_application(deployed_app_config=OURS)
        there = details(other=an_application(), **{"moorage-tiny.v1": mine})
        kept = without_application(there, "moorage-tiny.v1")["applications"]
        assert kept == [an_application()["deployed_app_config"]]

    def test_a_cluster_without_serve_gets_its_first_application(self) -> None:
        nothing: dict[str, Any] = {"controller_info": {}, "proxies": {}, "applications": {}}
        empty = {**nothing, "target_capacity": None}
        assert with_application(empty, OURS) == {"applications": [OURS]}

    def test_what_is_being_deleted_does_not_come_back(self) -> None:
        leaving = an_application(status="DELETING")
        assert with_application(details(other=leaving), OURS)["applications"] == [OURS]

    def test_what_serve_run_made_is_in_no_config_and_stays_out_of_it(self) -> None:
        imperative = an_application(source="imperative", deployed_app_config=None)
        assert with_application(details(other=imperative), OURS)["applications"] == [OURS]

    @pytest.mark.parametrize("field", ["host", "port"])
    def test_what_older_rays_list_but_do_not_take_is_left_out(self, field: str) -> None:
        config = an_application()["deployed_app_config"]
        listed = an_application(deployed_app_config={**config, field: 1})
        assert without_application(details(other=listed), "x")["applications"] == [config]

    @pytest.mark.parametrize(
        ("other", "why"),
        [
            ({"deployed_app_config": None}, "does not tell the config of its application other"),
            (
                {"deployed_app_config": {"runtime_env": {"env_vars": {"KEY": "<redacted>"}}}},
                "hides variables of other",
            ),
            (
                {"deployed_app_config": {"name": "other", "route_prefix": "/tiny.v1"}},
                "other has the route /tiny.v1 already",
            ),
        ],
    )
    def test_nothing_is_sent_that_would_harm_another(self, other: dict[str, Any], why: str) -> None:
        with pytest.raises(Failure, match=why):
            with_application(details(other=an_application(**other)), OURS)


class TestState:
    """What the cluster says about one application."""

    def test_one_that_is_not_there_has_none(self) -> None:
        assert app_state(details(), "moorage-tiny.v1") is None

    def test_its_marks_say_whose_it_is(self) -> None:
        marks = {MARK_LEDGER: "abc", MARK_RELEASE: "tiny.v1"}
        config = {**OURS, "runtime_env": {"env_vars": marks}}
        state = app_state(details(a=an_application(deployed_app_config=config)), "a")
        assert state
        assert (state.status, state.ledger, state.release) == ("RUNNING", "abc", "tiny.v1")

    @pytest.mark.parametrize("config", [None, OURS, {**OURS, "runtime_env": {}}])
    def test_without_marks_it_is_somebody_elses(self, config: dict[str, Any] | None) -> None:
        state = app_state(details(a=an_application(deployed_app_config=config)), "a")
        assert state
        assert (state.ledger, state.release) == ("", "")

    def test_rays_own_message_is_kept_without_colours_and_repeated_openings(self) -> None:
        message = (
            "The deployment failed to start 3 times in a row. Error:\n"
            "\x1b[36mray::v1:A.initialize()\x1b[39m (pid=9)\n"
            "RuntimeError: Traceback (most recent call last):\n"
            '  File "shop.py", line 8, in __init__\n'
            "ValueError: no such thing"
        )
        replicas = [
            {"node_id": "n1", "log_file_path": "/serve/replica_a.log"},
            {"node_id": None, "log_file_path": None},
        ]
        deployment = {"status": "DEPLOY_FAILED", "message": message, "replicas": replicas}
        failed = an_application(
            status="DEPLOY_FAILED", message="Failed to update.", deployments={"A": deployment}
        )
        state = app_state(details(a=failed), "a")
        assert state
        assert state.message.splitlines() == [
            "Failed to update.",
            "A is DEPLOY_FAILED: The deployment failed to start 3 times in a row. Error:",
            "ray::v1:A.initialize() (pid=9)",
            '  File "shop.py", line 8, in __init__',
            "ValueError: no such thing",
        ]
        assert state.logs == (ReplicaLog(node="n1", file="serve/replica_a.log"),)

    def test_a_status_of_a_newer_ray_counts_as_not_there_yet(self) -> None:
        state = app_state(details(a=an_application(status="WARMING")), "a")
        assert state
        assert state.status == AppStatus.DEPLOYING
