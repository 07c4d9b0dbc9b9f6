"""The causes of failures, each with its facts: exit code, summary, suggestion and retries."""

from enum import IntEnum, StrEnum, auto
from typing import Any, Self


class ExitCode(IntEnum):
    """Exit status of the command line, by class of failure."""

    OK = 0
    INTERNAL = 1
    BAD_INPUT = 2
    NO_FIT = 3
    SOURCE = 4
    IMAGE = 5
    ENGINE = 6
    BUSY = 7
    MACHINE = 8
    CANCELLED = 130

    def cause(self, summary: str, suggestion: str, *, retryable: bool = False) -> tuple[Any, ...]:
        """The value of a member of `Cause` with this exit code."""
        return auto(), self, summary, suggestion, retryable


class Cause(StrEnum):
    """Why something failed. The value is the name, such as `bad-spec` for `BAD_SPEC`.

    The names are stable: artifacts, the ledger and `--json` contain them.

    Attributes:
        retryable: Whether the same attempt may succeed a little later without changes.
    """

    exit_code: ExitCode
    summary: str
    suggestion: str
    retryable: bool

    def __new__(cls, value: str, *facts: Any) -> Self:
        """A cause with that value and the facts from `ExitCode.cause`."""
        cause = str.__new__(cls, value)
        cause._value_ = value
        cause.exit_code, cause.summary, cause.suggestion, cause.retryable = facts
        return cause

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return name.lower().replace("_", "-")

    BAD_SPEC = ExitCode.BAD_INPUT.cause(
        "The model spec is not valid",
        "Correct the fields named above; `moorage explain FIELD` tells what each may hold.",
    )
    BAD_FLEET = ExitCode.BAD_INPUT.cause(
        "The fleet file is not valid",
        "Correct the fields named above; `moorage explain fleet.FIELD` tells what each may hold.",
    )
    BAD_SETTING = ExitCode.BAD_INPUT.cause(
        "A setting or argument is not valid",
        "Correct the environment variable or argument named above.",
    )
    POLICY_REFUSED = ExitCode.BAD_INPUT.cause(
        "The site's policy does not allow this",
        "Change or remove the fields named above (`moorage policy show` lists the rules), or deploy"
        " from the command line, or change the site's policy.",
    )
    UNKNOWN_RELEASE = ExitCode.BAD_INPUT.cause(
        "The release does not exist",
        "`moorage status` lists the models, `moorage history NAME` their releases.",
    )
    CANNOT_ROLL_BACK = ExitCode.BAD_INPUT.cause(
        "A rollback to that release is not possible",
        "`moorage history NAME` lists the releases. The target must be one that ran.",
    )
    SECRET_MISSING = ExitCode.BAD_INPUT.cause(
        "A secret that the spec or the fleet file names does not exist",
        "Set it as an environment variable of that name (`TEAM_TOKEN`), or as a Prefect Secret"
        " block (`team-token`).",
    )
    SOURCE_MISSING = ExitCode.SOURCE.cause(
        "The model was not found",
        "Check `source` and `revision`. Without a token, a private repository looks missing.",
    )
    SOURCE_INCOMPLETE = ExitCode.SOURCE.cause(
        "The model lacks files that an engine needs",
        "Check that config.json and every weight file of the index exist.",
    )
    SOURCE_CORRUPT = ExitCode.SOURCE.cause(
        "A file of the model is damaged or malicious",
        "Download the model again. If this repeats, do not use the model.",
    )
    SOURCE_UNAUTHORIZED = ExitCode.SOURCE.cause(
        "The hub refused the credentials",
        "Set a valid token: `secrets: {HF_TOKEN: NAME}` in the spec, or the variable HF_TOKEN.",
    )
    SOURCE_GATED = ExitCode.SOURCE.cause(
        "The model is gated and this account has no access",
        "Request access on the model's page, then deploy again with that account's token.",
    )
    SOURCE_OFFLINE = ExitCode.SOURCE.cause(
        "The hub is disabled, and the model is not stored locally",
        "Unset HF_HUB_OFFLINE, or deploy the model once while online.",
    )
    HUB_RATE_LIMITED = ExitCode.SOURCE.cause(
        "The hub limits the rate of requests",
        "Wait a few minutes, or use a token, which has higher limits.",
        retryable=True,
    )
    HUB_UNAVAILABLE = ExitCode.SOURCE.cause(
        "The hub cannot be reached",
        "Check the network and HF_ENDPOINT. Downloaded files are kept.",
        retryable=True,
    )
    DOWNLOAD_CORRUPT = ExitCode.SOURCE.cause(
        "A downloaded file differs from the hub's checksum or size",
        "Deploy again. If this repeats, a proxy may change or truncate the files.",
        retryable=True,
    )
    DOWNLOAD_TIMEOUT = ExitCode.SOURCE.cause(
        "The download did not finish within its deadline",
        "Deploy again to resume the download, or raise `readiness.deadlines.download_seconds`.",
    )
    CONFIG_UNREADABLE = ExitCode.SOURCE.cause(
        "The model's configuration cannot be read",
        "Check config.json. A model with its own code needs `trust_remote_code: true`.",
    )
    DISK_FULL = ExitCode.MACHINE.cause(
        "There is not enough disk space",
        "Free some space: `moorage models prune` removes models that nobody uses. Or set `store` of"
        " the host, or MOORAGE_HOME here, to a larger disk.",
    )
    NO_FIT = ExitCode.NO_FIT.cause(
        "The model fits nowhere",
        "See the reason for each host above. `moorage fleet` shows what the hosts have, `moorage"
        " fleet check` what is wrong with them, and `moorage doctor` what this machine lacks.",
    )
    PLACE_GONE = ExitCode.NO_FIT.cause(
        "The place where the release ran is gone",
        "Bring the host back into the fleet, or place the release elsewhere: `moorage rollback"
        " NAME --to RELEASE`.",
    )
    CLAIM_CONFLICT = ExitCode.BUSY.cause(
        "Another deployment claimed the planned resources",
        "Deploy again: moorage makes a new plan.",
        retryable=True,
    )
    PORT_TAKEN = ExitCode.BUSY.cause(
        "The port is already in use",
        "Choose another `port`, set it to `auto`, or stop the program that listens there.",
    )
    DEPLOY_IN_PROGRESS = ExitCode.BUSY.cause(
        "Another flow is working on this model",
        "Wait for it, or cancel its flow run.",
    )
    APPROVAL_REFUSED = ExitCode.BUSY.cause(
        "A person refused the deployment",
        "See the note. Nothing was changed.",
    )
    APPROVAL_TIMED_OUT = ExitCode.BUSY.cause(
        "Nobody approved the deployment in time",
        "Deploy again and run `moorage approve`, or raise `redeploy.approval_seconds`.",
    )
    APPROVAL_IMPOSSIBLE = ExitCode.BAD_INPUT.cause(
        "The deployment needs approval, and nobody can approve it here",
        "Run it in a terminal, or set PREFECT_API_URL to use a Prefect server.",
    )
    UNKNOWN_APPROVAL = ExitCode.BAD_INPUT.cause(
        "No flow run of that name waits for approval",
        "`moorage approvals` lists the flow runs that wait.",
    )
    LOST_LOCK = ExitCode.BUSY.cause(
        "Another flow took over this model",
        "This process was suspended for too long. See the newer flow run.",
    )
    ACCELERATOR_STARTING = ExitCode.BUSY.cause(
        "Another engine is still starting on the accelerator",
        "Deploy again once it serves or has failed, or raise"
        " `readiness.deadlines.load_seconds` to wait longer.",
        retryable=True,
    )
    NO_IMAGE = ExitCode.IMAGE.cause(
        "No image is known for this engine and hardware",
        "Set `engine.image` to an image of the engine for this hardware.",
    )
    IMAGE_MISSING = ExitCode.IMAGE.cause(
        "The image does not exist",
        "Check `engine.image` and `engine.version`. A private registry needs credentials.",
    )
    IMAGE_PULL_FAILED = ExitCode.IMAGE.cause(
        "The image could not be pulled",
        "Check that the host can reach the registry and is logged in.",
        retryable=True,
    )
    IMAGE_PULL_TIMEOUT = ExitCode.IMAGE.cause(
        "The image was not pulled within its deadline",
        "Raise `readiness.deadlines.image_seconds`, or pull the image in advance (`docker pull`).",
    )
    REGISTRY_UNAUTHORIZED = ExitCode.IMAGE.cause(
        "The registry refused access to the image",
        "Set the account and its secret under `registries.logins` in the fleet file.",
    )
    REGISTRY_UNTRUSTED = ExitCode.IMAGE.cause(
        "The connection to the registry is not safe",
        "Install the certificate of its authority on the host as"
        " /etc/docker/certs.d/HOST:PORT/ca.crt.",
    )
    REGISTRY_RATE_LIMITED = ExitCode.IMAGE.cause(
        "The registry limits the rate of pulls",
        "Set an account under `registries.logins` in the fleet file for a higher limit, or set a"
        " mirror as `registries.default`. Docker Hub counts pulls over six hours.",
        retryable=True,
    )
    REGISTRY_UNAVAILABLE = ExitCode.IMAGE.cause(
        "The registry cannot be reached",
        "Check the network, or set `registries.fallback` in the fleet file.",
        retryable=True,
    )
    RUNTIME_UNAVAILABLE = ExitCode.MACHINE.cause(
        "The container runtime does not answer",
        "Start Docker on the host, or check the host's address. `moorage doctor` shows more.",
        retryable=True,
    )
    CLUSTER_UNAVAILABLE = ExitCode.MACHINE.cause(
        "The Ray cluster does not answer",
        "Check that its head node runs, and the addresses under `clusters` of the fleet file.",
        retryable=True,
    )
    CLUSTER_UNSUITABLE = ExitCode.MACHINE.cause(
        "The Ray cluster cannot serve this",
        "Update Ray there and install `ray[serve]`, or name another cluster in"
        " `placement.cluster`.",
    )
    HOST_UNAUTHORIZED = ExitCode.MACHINE.cause(
        "The host refused the login",
        "Check the key or certificate that the fleet file gives for the host.",
    )
    HOST_UNTRUSTED = ExitCode.MACHINE.cause(
        "The identity of the host has changed or is unknown",
        "Check its key in the known hosts file, or the `ca.pem` of its certificate.",
    )
    PROGRAM_MISSING = ExitCode.MACHINE.cause(
        "A required program is not installed",
        "Install it (an engine: `moorage engines install NAME`), or use Docker.",
    )
    ACCELERATOR_RUNTIME_MISSING = ExitCode.MACHINE.cause(
        "Docker on the host cannot give accelerators to containers",
        "Install the NVIDIA container toolkit and restart Docker.",
    )
    DRIVER_TOO_OLD = ExitCode.MACHINE.cause(
        "The image needs a newer driver than the host has",
        "Update the driver, or set an older `engine.version`.",
    )
    LAUNCH_REFUSED = ExitCode.ENGINE.cause(
        "The container could not be started",
        "See the runtime's message above.",
    )
    GATEWAY_REFUSED = ExitCode.MACHINE.cause(
        "The gateway does not accept its configuration",
        "`moorage gateway status` shows what is wrong.",
    )
    ENGINE_NOT_INSTALLED = ExitCode.ENGINE.cause(
        "The engine's packages could not be installed",
        "Read the installer's last lines above.",
    )
    ENGINE_IN_USE = ExitCode.BUSY.cause(
        "The engine is in use",
        "Retire the models that use it first.",
    )
    PACKAGES_NOT_INSTALLED = ExitCode.ENGINE.cause(
        "The packages of `engine.packages` could not be installed in the container",
        "Read the installer's message in the log. `PIP_INDEX_URL` in `engine.env` or `secrets` sets"
        " the package index. The image must contain uv or pip.",
    )
    ENGINE_EXITED = ExitCode.ENGINE.cause(
        "The engine exited before it was ready",
        "Read the log. The engine's first error is usually the cause.",
    )
    ENGINE_BAD_ARGUMENT = ExitCode.ENGINE.cause(
        "The engine does not accept an argument",
        "Correct `engine.args` for this engine version.",
    )
    ENGINE_UNSUPPORTED_MODEL = ExitCode.ENGINE.cause(
        "The engine does not support this architecture",
        "Use a newer `engine.version` or another engine.",
    )
    ENGINE_OUT_OF_MEMORY = ExitCode.ENGINE.cause(
        "The engine ran out of memory",
        "Lower `context`, add an accelerator, or raise `placement.ram` on CPU.",
    )
    ENGINE_KV_CACHE_TOO_SMALL = ExitCode.ENGINE.cause(
        "The context does not fit into the KV cache",
        "Lower `context` to the length that the engine names, or give the engine more memory.",
    )
    ENGINE_ACCELERATOR_BUSY = ExitCode.ENGINE.cause(
        "Another program uses memory of the accelerator",
        "Look for leftover processes on the accelerator, or place the model elsewhere.",
    )
    ENGINE_NO_DEVICE = ExitCode.ENGINE.cause(
        "The engine found no device to run on",
        "Use an image for this hardware, and check that the container can see the device.",
    )
    ENGINE_SHM_TOO_SMALL = ExitCode.ENGINE.cause(
        "The container's shared memory is too small",
        "Raise `engine.shm` in the spec.",
    )
    ENGINE_CONTEXT_TOO_LONG = ExitCode.ENGINE.cause(
        "The context is longer than the model supports",
        "Lower `context` to the length that the engine names, or extend the rope scaling.",
    )
    ENGINE_UNSUPPORTED_QUANTIZATION = ExitCode.ENGINE.cause(
        "The engine cannot run this quantization here",
        "Serve another quantization of the model, or use other accelerators.",
    )
    ENGINE_UNSUPPORTED_SETTING = ExitCode.ENGINE.cause(
        "The engine does not support a setting",
        "Change `engine.args`, or the field of the spec that sets it.",
    )
    ENGINE_BAD_ADAPTER = ExitCode.ENGINE.cause(
        "The engine cannot load a LoRA adapter",
        "Check `lora`: the directory, rank and base model of each adapter.",
    )
    ENGINE_BAD_TOKENIZER = ExitCode.ENGINE.cause(
        "The engine cannot use the model's tokenizer or chat template",
        "Check tokenizer.json, tokenizer_config.json, and the tokenizer options in `engine.args`.",
    )
    LOAD_TIMEOUT = ExitCode.ENGINE.cause(
        "The engine did not become healthy within its deadline",
        "Read the log. If the engine was still loading, raise `readiness.deadlines.load_seconds`.",
    )
    WARM_UP_TIMEOUT = ExitCode.ENGINE.cause(
        "The engine is healthy, but did not answer a request within its deadline",
        "Read the log. On slow hardware, raise `readiness.deadlines.warm_up_seconds`.",
    )
    BAD_ANSWER = ExitCode.ENGINE.cause(
        "The engine gave a wrong kind of answer",
        "Check that `mode` matches the model's purpose.",
    )
    ENGINE_UNREACHABLE = ExitCode.ENGINE.cause(
        "The engine does not answer",
        "`moorage status` shows whether it runs, and `moorage logs NAME` what it wrote last."
        " `moorage reconcile` starts one again that has ended.",
    )
    GATE_FAILED = ExitCode.ENGINE.cause(
        "The engine serves, but failed `readiness.prompts` or `compare`",
        "What served before still serves, if anything did: compare both with `moorage diff`. Or"
        " change the test.",
    )
    ACCEPTANCE_FAILED = ExitCode.ENGINE.cause(
        "The engine serves, but missed a limit of `readiness.acceptance` under load",
        "What served before still serves, if anything did. Read the figures with `moorage show`,"
        " then change the engine's settings or the limit.",
    )
    ADAPTERS_FIXED = ExitCode.BAD_INPUT.cause(
        "The adapters of this release cannot be changed while it serves",
        "Set `lora_updates` in the spec and deploy it again.",
    )
    ADAPTERS_FULL = ExitCode.BAD_INPUT.cause(
        "There is no room for another adapter",
        "Unload one with `moorage lora unload`, or raise `lora_updates.max` and deploy again.",
    )
    ADAPTER_NAME_TAKEN = ExitCode.BAD_INPUT.cause(
        "The adapter's name is already in use",
        "Choose another name, or unload the other adapter with `moorage lora unload`.",
    )
    ADAPTER_REFUSED = ExitCode.ENGINE.cause(
        "The engine refused the adapter",
        "See the engine's message above. The engine still serves without the adapter.",
    )
    UNKNOWN_ADAPTER = ExitCode.BAD_INPUT.cause(
        "No such adapter is loaded",
        "`moorage lora list MODEL` lists the loaded adapters.",
    )
    LEDGER_UNAVAILABLE = ExitCode.MACHINE.cause(
        "The ledger cannot be used",
        "Check MOORAGE_LEDGER_URL or, without it, MOORAGE_HOME: the ledger's server must answer, or"
        " its folder be writable.",
    )
    LEDGER_DAMAGED = ExitCode.MACHINE.cause(
        "The ledger is damaged",
        "`moorage ledger check` shows where. `moorage ledger restore FILE` restores a backup.",
    )
    SERVER_UNAVAILABLE = ExitCode.MACHINE.cause(
        "The Prefect server does not answer",
        "Check PREFECT_API_URL, and that the server runs.",
    )
    SERVER_REFUSED = ExitCode.MACHINE.cause(
        "The Prefect server refused a request",
        "Check that PREFECT_API_URL is the API of a Prefect 3 server, that you are logged in to it,"
        " and that nobody has deleted the flow run.",
    )
    STORE_UNWRITABLE = ExitCode.MACHINE.cause(
        "The model store is not writable",
        "Give this user write access to MOORAGE_HOME, or set MOORAGE_HOME to another folder.",
    )
    STEP_TIMEOUT = ExitCode.MACHINE.cause(
        "A step exceeded its time limit",
        "See which step it was. The hub, the host or the ledger may be slow.",
    )
    INTERRUPTED = ExitCode.CANCELLED.cause(
        "The command was interrupted",
        "Run it again: moorage first cleans up what it left behind.",
    )


OUT_OF_REACH = frozenset(
    {
        Cause.RUNTIME_UNAVAILABLE,
        Cause.CLUSTER_UNAVAILABLE,
        Cause.HOST_UNAUTHORIZED,
        Cause.HOST_UNTRUSTED,
        Cause.SECRET_MISSING,  # the key of its login
    }
)
"""Why nothing is known of a workload on a host: nobody reaches the host now, and it may run."""
