"""The policy of a site: a set of rules for each channel, with its own defaults."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from moorage.common.values import InputValue, Value
from moorage.policy.names import ANY, OFFICIAL, SAFE
from moorage.policy.request import Channel
from moorage.spec import IpcMode, RuntimeName

IMAGES_PATTERN = (
    r"^(\*|\[[0-9a-fA-F:.]+\](:\d{1,5})?(/[\w.-]+)*/?"
    r"|[A-Za-z0-9][\w.-]*(:\d{1,5})?(/[\w.-]+)*/?)$"
)
PATTERNS_IN_WORDS = {
    IMAGES_PATTERN: "a registry or a part of it, such as registry.example.com/team, without tag"
}

Entry = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Images = Annotated[str, StringConstraints(pattern=IMAGES_PATTERN)]
Limit = Annotated[int, Field(ge=0)]


class Rules(InputValue):
    """What specs that come through Prefect's API may request. `*` stands for any text in names."""

    runtimes: tuple[RuntimeName, ...] = Field(
        (RuntimeName.DOCKER, RuntimeName.PROCESS, RuntimeName.RAY),
        description="Allowed runtimes. `auto` in a spec requires `docker` and `process`.",
    )
    registries: tuple[Images, ...] = Field(
        (OFFICIAL,),
        description="Registries, or parts of them, that `engine.image` may name, such as"
        " `registry.example.com/team`. `official` stands for the images that moorage itself takes"
        " and those of the worker's fleet; `*` for any. An image is code that runs in a container.",
    )
    digests: bool = Field(
        False, description="Whether `engine.image` must name its digest (`@sha256:...`)."
    )
    commands: bool = Field(
        False,
        description="Whether a spec may set what is executed: `engine.command`,"
        " `engine.entrypoint`, and `import_path`, `args`, `deployments` and `runtime_env` of"
        " `engine.application`.",
    )
    packages: bool = Field(False, description="Whether a spec may set `engine.packages`.")
    args: tuple[Entry, ...] = Field(
        (SAFE,),
        description="Options that `engine.args` may hold, written in full. `safe` stands for those"
        " that name no file, class, plugin, address or other model; `*` for any.",
    )
    env: tuple[Entry, ...] = Field(
        (SAFE,),
        description="Variables that `engine.env` and `secrets` may set. `safe` stands for those"
        " that make no engine run, read or request anything else, and the keys of hub, bucket and"
        " vLLM.",
    )
    variables: tuple[Entry, ...] = Field(
        ("HF_TOKEN",),
        description="Environment variables of the worker that `secrets` may name. Prefect's Secret"
        " blocks are always allowed: anybody with the login can read them there.",
    )
    privileged: bool = Field(False, description="Whether a container may be privileged.")
    host_network: bool = Field(False, description="Whether a container may use the host's network.")
    ipc: tuple[IpcMode, ...] = Field(
        (IpcMode.PRIVATE,), description="Allowed values of `engine.container.ipc`."
    )
    capabilities: tuple[Entry, ...] = Field(
        (), description="Capabilities that a container may get."
    )
    groups: tuple[Entry, ...] = Field(
        (),
        description="Groups that a container may be in; they give access to devices of the host.",
    )
    file_roots: tuple[Entry, ...] = Field(
        ("store", "models"),
        description="Folders that `file://` sources of the model, its adapters and its draft model"
        " must be in, after links are followed. `store` stands for the stores of `MOORAGE_HOME`."
        " Relative folders start in the project's folder.",
    )
    trust_remote_code: bool = Field(
        False, description="Whether Python code that comes with a model may run."
    )
    hosts: tuple[Entry, ...] = Field(
        (ANY,),
        description="Hosts and Ray clusters that specs are placed on. Others of the fleet are"
        " excluded.",
    )
    host_labels: dict[str, tuple[Entry, ...]] = Field(
        {},
        description="Labels with their allowed values, such as"
        ' `{"pool": ["batch"]}`. Hosts without them are excluded.',
    )
    own_fleet: bool = Field(
        False,
        description="Whether a run may name a `fleet`; else it gets the worker's. A fleet names"
        " addresses, keys, registries, and commands of engines.",
    )
    spec_folders: tuple[Entry, ...] = Field(
        ("deployments",),
        description="Folders of specs: `deploy-by-name` offers them, and `files` of"
        " `redeploy-models` must be in one. Specs in them count as"
        " submitted by the command line.",
    )
    applied_from: tuple[Entry, ...] = Field(
        (ANY,), description="Names that a run may give to a set of files (`applied_from`)."
    )
    replicas: Limit | None = Field(None, description="Most replicas of a model. Empty = no limit.")
    accelerators: Limit | None = Field(
        None, description="Most accelerators of a model, all replicas together. Empty = no limit."
    )
    owner_replicas: Limit | None = Field(
        None, description="Most replicas of all models of an owner. Empty = no limit."
    )
    owner_accelerators: Limit | None = Field(
        None, description="Most accelerators of all models of an owner. Empty = no limit."
    )


def _open(name: str, default: Any) -> Any:
    return Field(default, description=Rules.model_fields[name].description)


class CliRules(Rules):
    """What specs of the command line may request: anything that these rules do not exclude.

    A user of the command line can start programs without it. These rules prevent mistakes, not
    harm.
    """

    registries: tuple[Images, ...] = _open("registries", (ANY,))
    commands: bool = _open("commands", True)
    packages: bool = _open("packages", True)
    args: tuple[Entry, ...] = _open("args", (ANY,))
    env: tuple[Entry, ...] = _open("env", (ANY,))
    variables: tuple[Entry, ...] = _open("variables", (ANY,))
    privileged: bool = _open("privileged", True)
    host_network: bool = _open("host_network", True)
    ipc: tuple[IpcMode, ...] = _open("ipc", tuple(IpcMode))
    capabilities: tuple[Entry, ...] = _open("capabilities", (ANY,))
    groups: tuple[Entry, ...] = _open("groups", (ANY,))
    file_roots: tuple[Entry, ...] = _open("file_roots", ("/",))
    trust_remote_code: bool = _open("trust_remote_code", True)
    own_fleet: bool = _open("own_fleet", True)
    spec_folders: tuple[Entry, ...] = _open("spec_folders", ("/",))


class Policy(InputValue):
    """What a site allows."""

    fleet: str = Field(
        "",
        description="Fleet file of the worker, for runs that come through the API without a"
        " fleet; a relative path starts in the project's folder. Empty = this machine.",
    )
    api: Rules = Field(
        Rules.defaults(), description="Rules for specs that come through Prefect's API."
    )
    cli: CliRules = Field(CliRules.defaults(), description="Rules for specs of the command line.")

    def rules(self, channel: Channel) -> Rules:
        """The rules for specs of a channel."""
        return self.cli if channel == Channel.CLI else self.api


class EffectivePolicy(Value):
    """The policy in force. `file` is empty for the default policy."""

    policy: Policy = Policy.defaults()
    file: str = ""

    @property
    def source(self) -> str:
        """The file, or `the default policy`."""
        return self.file or "the default policy"
