"""The causes of failures, each with its facts: exit code, summary, suggestion and retries."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Self


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


class Cause(StrEnum):
    """Why something failed. The names are stable: artifacts, the ledger and `--json` hold them.

    Attributes:
        exit_code: Exit status of the command line.
        summary: One line for a person.
        suggestion: What to do about it.
        retryable: Whether the same attempt may succeed a little later without a change.
    """

    exit_code: ExitCode
    summary: str
    suggestion: str
    retryable: bool

    def __new__(
        cls,
        name: str,
        exit_code: ExitCode,
        summary: str,
        suggestion: str,
        retryable: bool = False,
    ) -> Self:
        """A cause with its facts; its value is the name."""
        cause = str.__new__(cls, name)
        cause._value_ = name
        cause.exit_code, cause.retryable = exit_code, retryable
        cause.summary, cause.suggestion = summary, suggestion
        return cause

    @classmethod
    def parse(cls, name: str) -> Self:
        """The cause of a name."""
        return cls(name)  # type: ignore[call-arg]  # mypy reads a lookup as `__new__`

    BAD_SPEC = (
        "bad-spec",
        ExitCode.BAD_INPUT,
        "The model spec is not valid",
        "Correct the fields named above; docs/spec.md lists every field.",
    )
    BAD_FLEET = (
        "bad-fleet",
        ExitCode.BAD_INPUT,
        "The fleet file is not valid",
        "Correct the fields named above; docs/spec.md lists every field.",
    )
    BAD_SETTING = (
        "bad-setting",
        ExitCode.BAD_INPUT,
        "A setting or argument is not valid",
        "Correct the environment variable or argument named above.",
    )
    POLICY_REFUSED = (
        "policy-refused",
        ExitCode.BAD_INPUT,
        "The site's policy does not allow this",
        "Remove the fields named above, or change the site's policy (docs/policy.md).",
    )
    UNKNOWN_RELEASE = (
        "unknown-release",
        ExitCode.BAD_INPUT,
        "The release does not exist",
        "`moorage status` lists the models, `moorage history NAME` their releases.",
    )
    CANNOT_ROLL_BACK = (
        "cannot-roll-back",
        ExitCode.BAD_INPUT,
        "A rollback to that release is not possible",
        "`moorage history NAME` lists the releases. The target must be one that ran.",
    )
    SECRET_MISSING = (
        "secret-missing",
        ExitCode.BAD_INPUT,
        "A secret that the spec names does not exist",
        "Set it as an environment variable of that name, or as a Prefect Secret block.",
    )
    SOURCE_MISSING = (
        "source-missing",
        ExitCode.SOURCE,
        "The model was not found",
        "Check `source` and `revision`. Without a token, a private repository looks missing.",
    )
    SOURCE_INCOMPLETE = (
        "source-incomplete",
        ExitCode.SOURCE,
        "The model lacks files that an engine needs",
        "Check that config.json and every weight file of the index exist.",
    )
    SOURCE_CORRUPT = (
        "source-corrupt",
        ExitCode.SOURCE,
        "A file of the model is damaged or malicious",
        "Download the model again. If this repeats, do not use the model.",
    )
    SOURCE_UNAUTHORIZED = (
        "source-unauthorized",
        ExitCode.SOURCE,
        "The hub refused the credentials",
        "Set a valid token: `secrets: {HF_TOKEN: NAME}` in the spec, or the variable HF_TOKEN.",
    )
    SOURCE_GATED = (
        "source-gated",
        ExitCode.SOURCE,
        "The model is gated and this account has no access",
        "Request access on the model's page, then deploy again with that account's token.",
    )
    SOURCE_OFFLINE = (
        "source-offline",
        ExitCode.SOURCE,
        "The hub is disabled, and the model is not stored locally",
        "Unset HF_HUB_OFFLINE, or deploy the model once while online.",
    )
    HUB_RATE_LIMITED = (
        "hub-rate-limited",
        ExitCode.SOURCE,
        "The hub limits the rate of requests",
        "Wait a few minutes, or use a token, which has higher limits.",
        True,
    )
    HUB_UNAVAILABLE = (
        "hub-unavailable",
        ExitCode.SOURCE,
        "The hub cannot be reached",
        "Check the network and HF_ENDPOINT. Downloaded files are kept.",
        True,
    )
    DOWNLOAD_CORRUPT = (
        "download-corrupt",
        ExitCode.SOURCE,
        "A downloaded file differs from the hub's checksum or size",
        "Deploy again. If this repeats, a proxy may change or truncate the files.",
        True,
    )
    DOWNLOAD_TIMEOUT = (
        "download-timeout",
        ExitCode.SOURCE,
        "The download did not finish within its deadline",
        "Deploy again to resume the download, or raise `readiness.deadlines.download_seconds`.",
    )
    CONFIG_UNREADABLE = (
        "config-unreadable",
        ExitCode.SOURCE,
        "The model's configuration cannot be read",
        "Check config.json. A model with its own code needs `trust_remote_code: true`.",
    )
    DISK_FULL = (
        "disk-full",
        ExitCode.MACHINE,
        "There is not enough disk space",
        "Free some space: `moorage models prune` removes models that nobody uses. Or set `store` of"
        " the host, or MOORAGE_HOME here, to a larger disk.",
    )
    NO_FIT = (
        "no-fit",
        ExitCode.NO_FIT,
        "The model fits nowhere",
        "See the reason for each host above.",
    )
    CLAIM_CONFLICT = (
        "claim-conflict",
        ExitCode.BUSY,
        "Another deployment claimed the planned resources",
        "Deploy again: moorage makes a new plan.",
        True,
    )
    PORT_TAKEN = (
        "port-taken",
        ExitCode.BUSY,
        "The port is already in use",
        "Choose another `port`, set it to `auto`, or stop the program that listens there.",
    )
    DEPLOY_IN_PROGRESS = (
        "deploy-in-progress",
        ExitCode.BUSY,
        "Another flow is working on this model",
        "Wait for it, or cancel its flow run.",
    )
    APPROVAL_REFUSED = (
        "approval-refused",
        ExitCode.BUSY,
        "A person refused the deployment",
        "See the note. The old release still serves.",
    )
    APPROVAL_TIMED_OUT = (
        "approval-timed-out",
        ExitCode.BUSY,
        "Nobody approved the deployment in time",
        "Deploy again and run `moorage approve`, or raise `redeploy.approval_seconds`.",
    )
    APPROVAL_IMPOSSIBLE = (
        "approval-impossible",
        ExitCode.BAD_INPUT,
        "The deployment needs approval, and nobody can approve it here",
        "Run it in a terminal, or set PREFECT_API_URL to use a Prefect server.",
    )
    UNKNOWN_APPROVAL = (
        "unknown-approval",
        ExitCode.BAD_INPUT,
        "No flow run of that name waits for approval",
        "`moorage approvals` lists the flow runs that wait.",
    )
    LOST_LOCK = (
        "lost-lock",
        ExitCode.BUSY,
        "Another flow took over this model",
        "This process was suspended for too long. See the newer flow run.",
    )
    ACCELERATOR_STARTING = (
        "accelerator-starting",
        ExitCode.BUSY,
        "Another engine is still starting on the accelerator",
        "Deploy again once it serves or has failed, or raise"
        " `readiness.deadlines.load_seconds` to wait longer.",
        True,
    )
    NO_IMAGE = (
        "no-image",
        ExitCode.IMAGE,
        "No image is known for this engine and hardware",
        "Set `engine.image` to an image of the engine for this hardware.",
    )
    IMAGE_MISSING = (
        "image-missing",
        ExitCode.IMAGE,
        "The image does not exist",
        "Check `engine.image` and `engine.version`. A private registry needs credentials.",
    )
    IMAGE_PULL_FAILED = (
        "image-pull-failed",
        ExitCode.IMAGE,
        "The image could not be pulled",
        "Check that the host can reach the registry and is logged in.",
        True,
    )
    IMAGE_PULL_TIMEOUT = (
        "image-pull-timeout",
        ExitCode.IMAGE,
        "The image was not pulled within its deadline",
        "Raise `readiness.deadlines.image_seconds`, or pull the image in advance (`docker pull`).",
    )
    REGISTRY_UNAUTHORIZED = (
        "registry-unauthorized",
        ExitCode.IMAGE,
        "The registry refused access to the image",
        "Set the account and its secret under `registries.logins` in the fleet file.",
    )
    REGISTRY_UNTRUSTED = (
        "registry-untrusted",
        ExitCode.IMAGE,
        "The connection to the registry is not safe",
        "Install the certificate of its authority on the host as"
        " /etc/docker/certs.d/HOST:PORT/ca.crt.",
    )
    REGISTRY_RATE_LIMITED = (
        "registry-rate-limited",
        ExitCode.IMAGE,
        "The registry limits the rate of pulls",
        "Set an account under `registries.logins` in the fleet file for a higher limit, or set a"
        " mirror as `registries.default`. Docker Hub counts pulls over six hours.",
        True,
    )
    REGISTRY_UNAVAILABLE = (
        "registry-unavailable",
        ExitCode.IMAGE,
        "The registry cannot be reached",
        "Check the network, or set `registries.fallback` in the fleet file.",
        True,
    )
    RUNTIME_UNAVAILABLE = (
        "runtime-unavailable",
        ExitCode.MACHINE,
        "The container runtime does not answer",
        "Start Docker on the host, or check the host's address. `moorage doctor` shows more.",
        True,
    )
    CLUSTER_UNAVAILABLE = (
        "cluster-unavailable",
        ExitCode.MACHINE,
        "The Ray cluster does not answer",
        "Check that its head node runs, and the addresses under `clusters` of the fleet file.",
        True,
    )
    CLUSTER_UNSUITABLE = (
        "cluster-unsuitable",
        ExitCode.MACHINE,
        "The Ray cluster cannot serve this",
        "Update Ray there and install `ray[serve]`, or name another cluster in"
        " `placement.cluster`.",
    )
    HOST_UNAUTHORIZED = (
        "host-unauthorized",
        ExitCode.MACHINE,
        "The host refused the login",
        "Check the key or certificate that the fleet file gives for the host.",
    )
    HOST_UNTRUSTED = (
        "host-untrusted",
        ExitCode.MACHINE,
        "The identity of the host has changed or is unknown",
        "Check its key in the known hosts file, or the `ca.pem` of its certificate.",
    )
    PROGRAM_MISSING = (
        "program-missing",
        ExitCode.MACHINE,
        "A required program is not installed",
        "Install it (in the checkout: `pip install '.[transformers]'`), or use Docker.",
    )
    ACCELERATOR_RUNTIME_MISSING = (
        "accelerator-runtime-missing",
        ExitCode.MACHINE,
        "Docker on the host cannot give accelerators to containers",
        "Install the NVIDIA container toolkit and restart Docker.",
    )
    DRIVER_TOO_OLD = (
        "driver-too-old",
        ExitCode.MACHINE,
        "The image needs a newer driver than the host has",
        "Update the driver, or set an older `engine.version`.",
    )
    LAUNCH_REFUSED = (
        "launch-refused",
        ExitCode.ENGINE,
        "The container could not be started",
        "See the runtime's message above.",
    )
    GATEWAY_REFUSED = (
        "gateway-refused",
        ExitCode.MACHINE,
        "The gateway does not accept its configuration",
        "`moorage gateway status` shows its configuration. The next reconcile repairs it.",
    )
    PACKAGES_NOT_INSTALLED = (
        "packages-not-installed",
        ExitCode.ENGINE,
        "The packages of `engine.packages` could not be installed in the container",
        "Read the installer's message in the log. `PIP_INDEX_URL` in `engine.env` or `secrets` sets"
        " the package index. The image must contain uv or pip.",
    )
    ENGINE_EXITED = (
        "engine-exited",
        ExitCode.ENGINE,
        "The engine exited before it was ready",
        "Read the log. The engine's first error is usually the cause.",
    )
    ENGINE_BAD_ARGUMENT = (
        "engine-bad-argument",
        ExitCode.ENGINE,
        "The engine does not accept an argument",
        "Correct `engine.args` for this engine version.",
    )
    ENGINE_UNSUPPORTED_MODEL = (
        "engine-unsupported-model",
        ExitCode.ENGINE,
        "The engine does not support this architecture",
        "Use a newer `engine.version` or another engine.",
    )
    ENGINE_OUT_OF_MEMORY = (
        "engine-out-of-memory",
        ExitCode.ENGINE,
        "The engine ran out of memory",
        "Lower `context`, add an accelerator, or raise `placement.ram` on CPU.",
    )
    ENGINE_KV_CACHE_TOO_SMALL = (
        "engine-kv-cache-too-small",
        ExitCode.ENGINE,
        "The context does not fit into the KV cache",
        "Lower `context` to the length that the engine names, or give the engine more memory.",
    )
    ENGINE_ACCELERATOR_BUSY = (
        "engine-accelerator-busy",
        ExitCode.ENGINE,
        "Another program uses memory of the accelerator",
        "Look for leftover processes on the accelerator, or place the model elsewhere.",
    )
    ENGINE_NO_DEVICE = (
        "engine-no-device",
        ExitCode.ENGINE,
        "The engine found no device to run on",
        "Use an image for this hardware, and check that the container can see the device.",
    )
    ENGINE_SHM_TOO_SMALL = (
        "engine-shm-too-small",
        ExitCode.ENGINE,
        "The container's shared memory is too small",
        "Raise `engine.shm` in the spec.",
    )
    ENGINE_CONTEXT_TOO_LONG = (
        "engine-context-too-long",
        ExitCode.ENGINE,
        "The context is longer than the model supports",
        "Lower `context` to the length that the engine names, or extend the rope scaling.",
    )
    ENGINE_UNSUPPORTED_QUANTIZATION = (
        "engine-unsupported-quantization",
        ExitCode.ENGINE,
        "The engine cannot run this quantization here",
        "Serve another quantization of the model, or use other accelerators.",
    )
    ENGINE_UNSUPPORTED_SETTING = (
        "engine-unsupported-setting",
        ExitCode.ENGINE,
        "The engine does not support a setting",
        "Change `engine.args`, or the field of the spec that sets it.",
    )
    ENGINE_BAD_ADAPTER = (
        "engine-bad-adapter",
        ExitCode.ENGINE,
        "The engine cannot load a LoRA adapter",
        "Check `lora`: the directory, rank and base model of each adapter.",
    )
    ENGINE_BAD_TOKENIZER = (
        "engine-bad-tokenizer",
        ExitCode.ENGINE,
        "The engine cannot use the model's tokenizer or chat template",
        "Check tokenizer.json, tokenizer_config.json, and the tokenizer options in `engine.args`.",
    )
    LOAD_TIMEOUT = (
        "load-timeout",
        ExitCode.ENGINE,
        "The engine did not become healthy within its deadline",
        "Read the log. If the engine was still loading, raise `readiness.deadlines.load_seconds`.",
    )
    WARM_UP_TIMEOUT = (
        "warm-up-timeout",
        ExitCode.ENGINE,
        "The engine is healthy, but did not answer a request within its deadline",
        "Read the log. On slow hardware, raise `readiness.deadlines.warm_up_seconds`.",
    )
    BAD_ANSWER = (
        "bad-answer",
        ExitCode.ENGINE,
        "The engine gave a wrong kind of answer",
        "Check that `mode` matches the model's purpose.",
    )
    GATE_FAILED = (
        "gate-failed",
        ExitCode.ENGINE,
        "The engine serves, but failed `readiness.prompts` or `compare`",
        "The old release still serves. Compare both with `moorage diff`, or change the test.",
    )
    ADAPTERS_FIXED = (
        "adapters-fixed",
        ExitCode.BAD_INPUT,
        "The adapters of this release cannot be changed while it serves",
        "Set `lora_updates` in the spec and deploy it again.",
    )
    ADAPTERS_FULL = (
        "adapters-full",
        ExitCode.BAD_INPUT,
        "There is no room for another adapter",
        "Unload one with `moorage lora unload`, or raise `lora_updates.max` and deploy again.",
    )
    ADAPTER_NAME_TAKEN = (
        "adapter-name-taken",
        ExitCode.BAD_INPUT,
        "The adapter's name is already in use",
        "Choose another name, or unload the other adapter with `moorage lora unload`.",
    )
    ADAPTER_REFUSED = (
        "adapter-refused",
        ExitCode.ENGINE,
        "The engine refused the adapter",
        "See the engine's message above. The engine still serves without the adapter.",
    )
    UNKNOWN_ADAPTER = (
        "unknown-adapter",
        ExitCode.BAD_INPUT,
        "No such adapter is loaded",
        "`moorage lora list MODEL` lists the loaded adapters.",
    )
    LEDGER_UNAVAILABLE = (
        "ledger-unavailable",
        ExitCode.MACHINE,
        "The ledger cannot be used",
        "Check MOORAGE_LEDGER_URL, and that its file or server is available and writable.",
    )
    LEDGER_DAMAGED = (
        "ledger-damaged",
        ExitCode.MACHINE,
        "The ledger is damaged",
        "`moorage ledger check` shows where. `moorage ledger restore FILE` restores a backup.",
    )
    SERVER_UNAVAILABLE = (
        "server-unavailable",
        ExitCode.MACHINE,
        "The Prefect server does not answer",
        "Check PREFECT_API_URL, and that the server runs.",
    )
    SERVER_REFUSED = (
        "server-refused",
        ExitCode.MACHINE,
        "The Prefect server refused a request",
        "Check that PREFECT_API_URL is the API of a Prefect 3 server, that you are logged in to it,"
        " and that nobody has deleted the flow run.",
    )
    STORE_UNWRITABLE = (
        "store-unwritable",
        ExitCode.MACHINE,
        "The model store is not writable",
        "Give this user write access to MOORAGE_HOME, or set MOORAGE_HOME to another folder.",
    )
    STEP_TIMEOUT = (
        "step-timeout",
        ExitCode.MACHINE,
        "A step exceeded its time limit",
        "See which step it was. The hub, the host or the ledger may be slow.",
    )
    INTERRUPTED = (
        "interrupted",
        ExitCode.CANCELLED,
        "The command was interrupted",
        "Run it again: moorage first cleans up what it left behind.",
    )
