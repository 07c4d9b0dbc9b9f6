"""Settings from environment variables, read in one place."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

PREFIX = "MOORAGE_"


class Settings(BaseModel):
    """Settings of the machine that runs the flows.

    Attributes are environment variables with the prefix `MOORAGE_`, in upper or lower case; some
    accept the variables of the hub or of S3, too. An empty variable counts as unset.
    pydantic-settings would read them in the same way, but takes longer to import than pydantic.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    home: Path = Field(
        Path("~/.moorage"),
        description="Where models, logs, caches and the default ledger are kept.",
    )
    ledger_url: str = Field(
        "", description="SQLAlchemy URL of the ledger. Empty = an SQLite file in the home."
    )
    hub_endpoint: str = Field(
        "https://huggingface.co",
        validation_alias=AliasChoices("MOORAGE_HUB_ENDPOINT", "HF_ENDPOINT"),
        description="The hub's address.",
    )
    hub_offline: bool = Field(
        False,
        validation_alias=AliasChoices("MOORAGE_HUB_OFFLINE", "HF_HUB_OFFLINE"),
        description="Whether the hub is never asked: only what is stored can be served.",
    )
    s3_endpoint: str = Field(
        "",
        validation_alias=AliasChoices(
            "MOORAGE_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"
        ),
        description="Address of the object store for `s3://`. Empty = Amazon's.",
    )
    download_workers: int = Field(8, ge=1, le=64, description="Files downloaded at the same time.")
    hosts_at_once: int = Field(
        8,
        ge=1,
        le=256,
        description="Hosts that pull images, receive models and start engines at the same time.",
    )
    surveys_at_once: int = Field(
        128, ge=1, le=1024, description="Hosts that are surveyed at the same time."
    )
    task_runner: Literal["here", "ray"] = Field(
        "here",
        description="What surveys remote hosts, and pulls and stages there: `here` = the flow's"
        " own process, `ray` = a Ray cluster (extra `ray`).",
    )
    keep_fetched: bool = Field(
        True,
        description="Whether a failed deploy keeps the models and images that it fetched; else it"
        " removes what no release needs.",
    )
    server: Literal["kept", "temporary"] = Field(
        "kept",
        description="The Prefect server of commands where PREFECT_API_URL is not set: `kept` = one"
        " is started in the background and stays for later commands, `temporary` = each command"
        " starts one that ends with it, as with `moorage --ephemeral`.",
    )
    server_idle_seconds: float = Field(
        3600,
        gt=0,
        description="How long after its last request the kept server ends, and the process that"
        " commands are forked off.",
    )
    forked: bool = Field(
        True,
        description="Whether commands are forked off a process that has imported what they need.",
    )
    serve_hosts: str = Field(
        "",
        description="Further host names of the servers of `moorage serve` and `moorage metrics"
        " serve`, separated by commas. They refuse requests for any other name but the loopback's.",
    )
    site: str = Field(
        "",
        description="Site of a worker: it leaves out hosts whose label `site` names another one."
        " Empty = all hosts are reached from here.",
    )
    policy: Path | None = Field(
        None,
        description="Policy file of the site. Empty = `deployments/policy.yaml` of the folder in"
        " which the command or worker was started, else of the project's; else the default policy.",
    )
    project: Path | None = Field(
        None,
        description="Project's folder, the base of a policy's relative paths. Empty = the current"
        " one, or that of the shell which started this, where it has a prefect.yaml."
        " `moorage serve` sets it for its runs.",
    )
    lock_wait_seconds: float = Field(
        600, ge=0, description="How long a deploy waits for another one of the same model."
    )
    orphan_seconds: float = Field(
        600, ge=0, description="How long reconciling waits before it removes what has no owner."
    )
    host_lost_seconds: float = Field(
        86_400,
        ge=0,
        description="How long a host may be unreachable before reconciling gives up what serves"
        " only there.",
    )
    probe_seconds: float = Field(
        60, ge=0, description="Interval at which reconciling asks a model for one token."
    )
    probe_timeout_seconds: float = Field(
        30, gt=0, description="How long a model may take for that token."
    )

    @field_validator("home", "policy", "project")
    @classmethod
    def _require_user(cls, path: Path | None) -> Path | None:
        """Refuse a path below the home of a user who does not exist."""
        try:
            return path and path.expanduser() and path
        except RuntimeError as error:
            raise ValueError("~ or ~NAME of a user who has a home") from error

    @model_validator(mode="before")
    @classmethod
    def _read_environment(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Add environment variables for the settings that are not given."""
        there = {name.upper(): value for name, value in os.environ.items() if value}
        found = dict(given)
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            named = getattr(alias, "choices", [f"{PREFIX}{name.upper()}"])
            variable = next((one for one in named if one in there), None)
            if variable and given.keys().isdisjoint((name, *named)):
                found[variable if alias else name] = there[variable]
        return found

    @cached_property
    def root(self) -> Path:
        """Absolute path of the home."""
        return self.home.expanduser().absolute()

    @property
    def served_names(self) -> tuple[str, ...]:
        """Host names in `serve_hosts`."""
        return tuple(name for name in self.serve_hosts.split(",") if name)

    @property
    def models(self) -> Path:
        """The model store."""
        return self.root / "models"

    @property
    def caches(self) -> Path:
        """Caches that engines keep for their next start, by model."""
        return self.root / "cache"

    @property
    def configs(self) -> Path:
        """Configurations of models, completed by transformers."""
        return self.root / "configs"

    @property
    def engines(self) -> Path:
        """Engines installed from packages, each version in its own environment."""
        return self.root / "engines"

    @property
    def adapters(self) -> Path:
        """The store of LoRA adapters."""
        return self.root / "adapters"

    def adapters_folder(self, model: str) -> Path:
        """Folder of the adapters that a serving model has loaded."""
        return self.root / "loaded" / model

    @property
    def locks(self) -> Path:
        """Locks that the flows of this machine share."""
        return self.root / "locks"

    @property
    def ledger(self) -> str:
        """URL of the ledger; by default an SQLite file in the home."""
        return self.ledger_url or f"sqlite:///{self.root / 'ledger.db'}"
