"""The settings are read as pydantic-settings reads them, whose import takes too long."""

from __future__ import annotations

import os
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError, create_model
from pydantic_settings import BaseSettings, SettingsConfigDict

from moorage.adapters.system.settings import PREFIX, Settings


class Peer(BaseSettings):
    """How pydantic-settings is told to read them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, populate_by_name=True
    )


FIELDS: dict[str, Any] = {
    name: (field.annotation, field) for name, field in Settings.model_fields.items()
}
PEER = create_model("PEER", __base__=Peer, **FIELDS)

VARIABLES = [
    *(f"{PREFIX}{name.upper()}" for name in Settings.model_fields),
    *("HF_ENDPOINT", "HF_HUB_OFFLINE", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    *("moorage_home", "Moorage_Server", "hf_endpoint", f"{PREFIX}NO_SETTING", "HOME"),
]
VALUES = ["", " ", "1", "0", "8", "1.5", "true", "off", "ray", "temporary", "~/a", "http://hub"]


def read(kind: Any, environment: dict[str, str], given: dict[str, Any]) -> Any:
    """The settings, or what is wrong with them: pydantic-settings may name another variable."""
    with patch.dict(os.environ, environment, clear=True):
        try:
            return kind(**given).model_dump()
        except ValidationError as error:
            return {(one["type"], str(one["input"])) for one in error.errors()}


@given(
    # No user has a home that begins with `~`.
    st.dictionaries(st.sampled_from(VARIABLES), st.sampled_from(VALUES)).filter(
        lambda environment: environment.get("HOME") != "~/a"
    ),
    st.dictionaries(st.sampled_from([*Settings.model_fields]), st.sampled_from(VALUES[1:])),
)
def test_they_are_read_as_pydantic_settings_reads_them(
    environment: dict[str, str], named: dict[str, Any]
) -> None:
    assert read(Settings, environment, named) == read(PEER, environment, named)


def test_a_mistake_names_the_variable_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "perhaps")
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert refused.value.errors()[0]["loc"] == ("HF_HUB_OFFLINE",)


def test_the_home_of_a_user_who_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_HOME", "~nosuchuser/x")
    with pytest.raises(ValidationError, match="a user who has a home"):
        Settings()


def test_what_is_given_wins_over_all_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://of-the-hub")
    assert Settings().hub_endpoint == "http://of-the-hub"
    monkeypatch.setenv("MOORAGE_HUB_ENDPOINT", "http://of-moorage")
    assert Settings().hub_endpoint == "http://of-moorage"
    assert Settings(hub_endpoint="http://given").hub_endpoint == "http://given"


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="hom"):
        Settings(hom="elsewhere")  # type: ignore[call-arg]
