"""The causes of failures: one list, each with its facts in one table.

Retries, exit codes, messages and suggestions all read `CAUSES`; nothing else decides them.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

from moorage.common.values import Value


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
    """Why something failed. The names are stable: artifacts, the ledger and `--json` hold them."""

    BAD_SPEC = "bad-spec"
    BAD_FLEET = "bad-fleet"
    BAD_SETTING = "bad-setting"
    POLICY_REFUSED = "policy-refused"
    UNKNOWN_RELEASE = "unknown-release"
    CANNOT_ROLL_BACK = "cannot-roll-back"
    SECRET_MISSING = "secret-missing"
    SOURCE_MISSING = "source-missing"
    SOURCE_INCOMPLETE = "source-incomplete"
    SOURCE_CORRUPT = "source-corrupt"
    SOURCE_UNAUTHORIZED = "source-unauthorized"
    SOURCE_GATED = "source-gated"
    SOURCE_OFFLINE = "source-offline"
    HUB_RATE_LIMITED = "hub-rate-limited"
    HUB_UNAVAILABLE = "hub-unavailable"
    DOWNLOAD_CORRUPT = "download-corrupt"
    DOWNLOAD_TIMEOUT = "download-timeout"
    CONFIG_UNREADABLE = "config-unreadable"
    DISK_FULL = "disk-full"
    NO_FIT = "no-fit"
    CLAIM_CONFLICT = "claim-conflict"
    PORT_TAKEN = "port-taken"
    DEPLOY_IN_PROGRESS = "deploy-in-progress"
    APPROVAL_REFUSED = "approval-refused"
    APPROVAL_TIMED_OUT = "approval-timed-out"
    APPROVAL_IMPOSSIBLE = "approval-impossible"
    UNKNOWN_APPROVAL = "unknown-approval"
    LOST_LOCK = "lost-lock"
    ACCELERATOR_STARTING = "accelerator-starting"
    NO_IMAGE = "no-image"
    IMAGE_MISSING = "image-missing"
    IMAGE_PULL_FAILED = "image-pull-failed"
    IMAGE_PULL_TIMEOUT = "image-pull-timeout"
    REGISTRY_UNAUTHORIZED = "registry-unauthorized"
    REGISTRY_UNTRUSTED = "registry-untrusted"
    REGISTRY_RATE_LIMITED = "registry-rate-limited"
    REGISTRY_UNAVAILABLE = "registry-unavailable"
    RUNTIME_UNAVAILABLE = "runtime-unavailable"
    CLUSTER_UNAVAILABLE = "cluster-unavailable"
    CLUSTER_UNSUITABLE = "cluster-unsuitable"
    HOST_UNAUTHORIZED = "host-unauthorized"
    HOST_UNTRUSTED = "host-untrusted"
    PROGRAM_MISSING = "program-missing"
    ACCELERATOR_RUNTIME_MISSING = "accelerator-runtime-missing"
    DRIVER_TOO_OLD = "driver-too-old"
    LAUNCH_REFUSED = "launch-refused"
    GATEWAY_REFUSED = "gateway-refused"
    PACKAGES_NOT_INSTALLED = "packages-not-installed"
    ENGINE_EXITED = "engine-exited"
    ENGINE_BAD_ARGUMENT = "engine-bad-argument"
    ENGINE_UNSUPPORTED_MODEL = "engine-unsupported-model"
    ENGINE_OUT_OF_MEMORY = "engine-out-of-memory"
    ENGINE_KV_CACHE_TOO_SMALL = "engine-kv-cache-too-small"
    ENGINE_ACCELERATOR_BUSY = "engine-accelerator-busy"
    ENGINE_NO_DEVICE = "engine-no-device"
    ENGINE_SHM_TOO_SMALL = "engine-shm-too-small"
    ENGINE_CONTEXT_TOO_LONG = "engine-context-too-long"
    ENGINE_UNSUPPORTED_QUANTIZATION = "engine-unsupported-quantization"
    ENGINE_UNSUPPORTED_SETTING = "engine-unsupported-setting"
    ENGINE_BAD_ADAPTER = "engine-bad-adapter"
    ENGINE_BAD_TOKENIZER = "engine-bad-tokenizer"
    LOAD_TIMEOUT = "load-timeout"
    WARM_UP_TIMEOUT = "warm-up-timeout"
    BAD_ANSWER = "bad-answer"
    GATE_FAILED = "gate-failed"
    ADAPTERS_FIXED = "adapters-fixed"
    ADAPTERS_FULL = "adapters-full"
    ADAPTER_NAME_TAKEN = "adapter-name-taken"
    ADAPTER_REFUSED = "adapter-refused"
    UNKNOWN_ADAPTER = "unknown-adapter"
    LEDGER_UNAVAILABLE = "ledger-unavailable"
    LEDGER_DAMAGED = "ledger-damaged"
    SERVER_UNAVAILABLE = "server-unavailable"
    SERVER_REFUSED = "server-refused"
    STORE_UNWRITABLE = "store-unwritable"
    STEP_TIMEOUT = "step-timeout"
    INTERRUPTED = "interrupted"


class CauseFacts(Value):
    """What is always true of a cause.

    Attributes:
        exit_code: Exit status of the command line.
        retryable: Whether the same attempt may succeed a little later without a change.
        summary: One line for a person.
        suggestion: What to do about it.
    """

    exit_code: ExitCode
    retryable: bool
    summary: str
    suggestion: str


def _facts(exit_code: ExitCode, summary: str, suggestion: str, retry: bool = False) -> CauseFacts:
    return CauseFacts(exit_code=exit_code, retryable=retry, summary=summary, suggestion=suggestion)


CAUSES: dict[Cause, CauseFacts] = {
    Cause.BAD_SPEC: _facts(
        ExitCode.BAD_INPUT,
        "The model spec is not valid",
        "Correct the fields named above; docs/spec.md lists every field.",
    ),
    Cause.BAD_FLEET: _facts(
        ExitCode.BAD_INPUT,
        "The fleet file is not valid",
        "Correct the fields named above; docs/spec.md lists every field.",
    ),
    Cause.BAD_SETTING: _facts(
        ExitCode.BAD_INPUT,
        "A setting or argument is not valid",
        "Correct the environment variable or argument named above.",
    ),
    Cause.POLICY_REFUSED: _facts(
        ExitCode.BAD_INPUT,
        "The site's policy does not allow it",
        "Leave out what is named above, or have the policy of the site say otherwise:"
        " docs/policy.md.",
    ),
    Cause.UNKNOWN_RELEASE: _facts(
        ExitCode.BAD_INPUT,
        "There is no such release",
        "`moorage status` lists the models, `moorage history NAME` their releases.",
    ),
    Cause.CANNOT_ROLL_BACK: _facts(
        ExitCode.BAD_INPUT,
        "That cannot be gone back to",
        "`moorage history NAME` lists the releases; only one that ran can be gone back to.",
    ),
    Cause.SECRET_MISSING: _facts(
        ExitCode.BAD_INPUT,
        "A secret named by the spec is not there",
        "Set it as an environment variable of that name, or as a Prefect Secret block.",
    ),
    Cause.SOURCE_MISSING: _facts(
        ExitCode.SOURCE,
        "The model was not found",
        "Check `source` and `revision`; a private repository looks missing without a token.",
    ),
    Cause.SOURCE_INCOMPLETE: _facts(
        ExitCode.SOURCE,
        "The model lacks files that an engine needs",
        "Check that config.json and every weight file that the index names are there.",
    ),
    Cause.SOURCE_CORRUPT: _facts(
        ExitCode.SOURCE,
        "A file of the model is damaged, or made to do harm",
        "Fetch the model anew; if it repeats, do not use it: no engine could, or it is an attack.",
    ),
    Cause.SOURCE_UNAUTHORIZED: _facts(
        ExitCode.SOURCE,
        "The hub refused the credentials",
        "Give a valid token: `secrets: {HF_TOKEN: NAME}` in the spec, or HF_TOKEN set.",
    ),
    Cause.SOURCE_GATED: _facts(
        ExitCode.SOURCE,
        "The model is gated and this account has no access",
        "Ask for access on the model's page, then deploy again with that account's token.",
    ),
    Cause.SOURCE_OFFLINE: _facts(
        ExitCode.SOURCE,
        "The hub is switched off and the model is not stored here",
        "Unset HF_HUB_OFFLINE, or deploy once while online so that the revision is kept.",
    ),
    Cause.HUB_RATE_LIMITED: _facts(
        ExitCode.SOURCE,
        "The hub asks to slow down",
        "Wait a few minutes, or use a token: its limits are higher.",
        retry=True,
    ),
    Cause.HUB_UNAVAILABLE: _facts(
        ExitCode.SOURCE,
        "The hub cannot be reached",
        "Check the network and HF_ENDPOINT; what has been downloaded is kept.",
        retry=True,
    ),
    Cause.DOWNLOAD_CORRUPT: _facts(
        ExitCode.SOURCE,
        "A downloaded file is not what the hub announced",
        "Deploy again; if it repeats, a proxy on the way alters or cuts the files.",
        retry=True,
    ),
    Cause.DOWNLOAD_TIMEOUT: _facts(
        ExitCode.SOURCE,
        "The download did not end within its deadline",
        "Raise `readiness.deadlines.download_seconds`, or deploy again: it resumes.",
    ),
    Cause.CONFIG_UNREADABLE: _facts(
        ExitCode.SOURCE,
        "The model's configuration cannot be read",
        "Check config.json; a model with its own code needs `trust_remote_code: true`.",
    ),
    Cause.DISK_FULL: _facts(
        ExitCode.MACHINE,
        "There is not enough disk space",
        "Free some space: `moorage models prune` removes models that nobody uses. Or set `store` of"
        " the host, or MOORAGE_HOME here, to a larger disk.",
    ),
    Cause.NO_FIT: _facts(
        ExitCode.NO_FIT,
        "The model fits nowhere",
        "See the reason given for each host above.",
    ),
    Cause.CLAIM_CONFLICT: _facts(
        ExitCode.BUSY,
        "Other deployments took what was planned",
        "Deploy again; the plan is made afresh.",
        retry=True,
    ),
    Cause.PORT_TAKEN: _facts(
        ExitCode.BUSY,
        "The port is already in use",
        "Choose another `port`, leave it `auto`, or stop what listens there.",
    ),
    Cause.DEPLOY_IN_PROGRESS: _facts(
        ExitCode.BUSY,
        "Another flow is working on this model",
        "Wait for it, or cancel its flow run.",
    ),
    Cause.APPROVAL_REFUSED: _facts(
        ExitCode.BUSY,
        "A person refused the deployment",
        "See the note; what served before still serves.",
    ),
    Cause.APPROVAL_TIMED_OUT: _facts(
        ExitCode.BUSY,
        "Nobody agreed to the deployment in time",
        "Deploy again, and agree with `moorage approve`; `redeploy.approval_seconds` waits longer.",
    ),
    Cause.APPROVAL_IMPOSSIBLE: _facts(
        ExitCode.BAD_INPUT,
        "The deployment needs a person's approval, and no person can be reached here",
        "Run it at a terminal, or on a Prefect server: set PREFECT_API_URL.",
    ),
    Cause.UNKNOWN_APPROVAL: _facts(
        ExitCode.BAD_INPUT,
        "No such flow run waits for approval",
        "`moorage approvals` lists those that wait.",
    ),
    Cause.LOST_LOCK: _facts(
        ExitCode.BUSY,
        "Another flow took over this model",
        "This process stood still for too long; look at the newer flow run.",
    ),
    Cause.ACCELERATOR_STARTING: _facts(
        ExitCode.BUSY,
        "Another engine is still starting on the accelerator",
        "Deploy again once it serves or has failed; a larger"
        " `readiness.deadlines.load_seconds` waits longer.",
        retry=True,
    ),
    Cause.NO_IMAGE: _facts(
        ExitCode.IMAGE,
        "No image is known for this engine here",
        "Set `engine.image` to an image that has the engine for this hardware.",
    ),
    Cause.IMAGE_MISSING: _facts(
        ExitCode.IMAGE,
        "The image does not exist",
        "Check `engine.image` and `engine.version`; a private registry needs credentials.",
    ),
    Cause.IMAGE_PULL_FAILED: _facts(
        ExitCode.IMAGE,
        "The image could not be pulled",
        "Check that the host reaches the registry and is logged in there.",
        retry=True,
    ),
    Cause.IMAGE_PULL_TIMEOUT: _facts(
        ExitCode.IMAGE,
        "The image was not pulled within its deadline",
        "Raise `readiness.deadlines.image_seconds`, or have the image on the host before"
        " (`docker pull`).",
    ),
    Cause.REGISTRY_UNAUTHORIZED: _facts(
        ExitCode.IMAGE,
        "The registry refused access to the image",
        "Give its account and the name of its secret under `registries.logins` in the fleet file.",
    ),
    Cause.REGISTRY_UNTRUSTED: _facts(
        ExitCode.IMAGE,
        "The connection to the registry is not safe",
        "Put the certificate of its authority on the host, as"
        " /etc/docker/certs.d/HOST:PORT/ca.crt.",
    ),
    Cause.REGISTRY_RATE_LIMITED: _facts(
        ExitCode.IMAGE,
        "The registry asks to slow down",
        "Give an account under `registries.logins` in the fleet file: its limit is higher; or name"
        " a mirror as `registries.default`. Docker Hub counts pulls over six hours.",
        retry=True,
    ),
    Cause.REGISTRY_UNAVAILABLE: _facts(
        ExitCode.IMAGE,
        "The registry cannot be reached",
        "Check the network, or set `registries.fallback` in the fleet file.",
        retry=True,
    ),
    Cause.RUNTIME_UNAVAILABLE: _facts(
        ExitCode.MACHINE,
        "The container runtime does not answer",
        "Start Docker on the host, or check the host's address; `moorage doctor` tells more.",
        retry=True,
    ),
    Cause.CLUSTER_UNAVAILABLE: _facts(
        ExitCode.MACHINE,
        "The Ray cluster does not answer",
        "Check that its head node runs, and the addresses under `clusters` of the fleet file.",
        retry=True,
    ),
    Cause.CLUSTER_UNSUITABLE: _facts(
        ExitCode.MACHINE,
        "The Ray cluster cannot serve this",
        "Update Ray there and install `ray[serve]`, or name another cluster in"
        " `placement.cluster`.",
    ),
    Cause.HOST_UNAUTHORIZED: _facts(
        ExitCode.MACHINE,
        "The host refused the login",
        "Check the key or certificate that the fleet file gives for the host.",
    ),
    Cause.HOST_UNTRUSTED: _facts(
        ExitCode.MACHINE,
        "The host is not the one that is known",
        "Check its key among the known hosts, or the `ca.pem` of its certificate.",
    ),
    Cause.PROGRAM_MISSING: _facts(
        ExitCode.MACHINE,
        "A program that is needed is not installed",
        "Install it, in the checkout `pip install '.[transformers]'`, or use Docker.",
    ),
    Cause.ACCELERATOR_RUNTIME_MISSING: _facts(
        ExitCode.MACHINE,
        "Docker on the host cannot hand out accelerators",
        "Install the NVIDIA container toolkit and restart Docker.",
    ),
    Cause.DRIVER_TOO_OLD: _facts(
        ExitCode.MACHINE,
        "The image asks for a newer driver than the host's",
        "Update the driver, or ask for an older `engine.version`.",
    ),
    Cause.LAUNCH_REFUSED: _facts(
        ExitCode.ENGINE,
        "The container could not be started",
        "See the runtime's own message above.",
    ),
    Cause.GATEWAY_REFUSED: _facts(
        ExitCode.MACHINE,
        "The gateway does not work with its configuration",
        "`moorage gateway status` shows what it works with; reconciling repairs it.",
    ),
    Cause.PACKAGES_NOT_INSTALLED: _facts(
        ExitCode.ENGINE,
        "The packages of `engine.packages` could not be installed in the container",
        "Read what the installer says in the log. `PIP_INDEX_URL` in `engine.env` or `secrets` says"
        " where packages come from; the image has to hold uv or pip.",
    ),
    Cause.ENGINE_EXITED: _facts(
        ExitCode.ENGINE,
        "The engine ended before it was ready",
        "Read the log: the first error of the engine is the cause, the last line never is.",
    ),
    Cause.ENGINE_BAD_ARGUMENT: _facts(
        ExitCode.ENGINE,
        "The engine does not know an argument",
        "Correct `engine.args` for this engine version.",
    ),
    Cause.ENGINE_UNSUPPORTED_MODEL: _facts(
        ExitCode.ENGINE,
        "The engine does not support this architecture",
        "Use a newer `engine.version` or another engine.",
    ),
    Cause.ENGINE_OUT_OF_MEMORY: _facts(
        ExitCode.ENGINE,
        "The engine ran out of memory",
        "Lower `context`, add an accelerator, or raise `placement.ram` on CPU.",
    ),
    Cause.ENGINE_KV_CACHE_TOO_SMALL: _facts(
        ExitCode.ENGINE,
        "The context does not fit into the KV cache",
        "Lower `context` to the length that the engine names, or give it more memory.",
    ),
    Cause.ENGINE_ACCELERATOR_BUSY: _facts(
        ExitCode.ENGINE,
        "Something else holds memory of the accelerator",
        "Look for leftover processes on it, or place the model elsewhere.",
    ),
    Cause.ENGINE_NO_DEVICE: _facts(
        ExitCode.ENGINE,
        "The engine found no device to run on",
        "Use an image made for this hardware, and check that the container sees the device.",
    ),
    Cause.ENGINE_SHM_TOO_SMALL: _facts(
        ExitCode.ENGINE,
        "The container's shared memory is too small",
        "Raise `engine.shm` in the spec.",
    ),
    Cause.ENGINE_CONTEXT_TOO_LONG: _facts(
        ExitCode.ENGINE,
        "The context is longer than the model's",
        "Lower `context` to the length that the engine names, or extend the rope scaling.",
    ),
    Cause.ENGINE_UNSUPPORTED_QUANTIZATION: _facts(
        ExitCode.ENGINE,
        "The engine cannot run this quantization here",
        "Serve another quantization of the model, or use other accelerators.",
    ),
    Cause.ENGINE_UNSUPPORTED_SETTING: _facts(
        ExitCode.ENGINE,
        "The engine cannot do what its settings ask for",
        "Change `engine.args`, or the field of the spec that the setting comes from.",
    ),
    Cause.ENGINE_BAD_ADAPTER: _facts(
        ExitCode.ENGINE,
        "The engine cannot load a LoRA adapter",
        "Check `lora`: each adapter's directory, its rank, and that it is made for this model.",
    ),
    Cause.ENGINE_BAD_TOKENIZER: _facts(
        ExitCode.ENGINE,
        "The engine cannot use the model's tokenizer or chat template",
        "Check tokenizer.json and tokenizer_config.json, and what `engine.args` says of them.",
    ),
    Cause.LOAD_TIMEOUT: _facts(
        ExitCode.ENGINE,
        "The engine did not become healthy within its deadline",
        "Read the log; if it was still loading, raise `readiness.deadlines.load_seconds`.",
    ),
    Cause.WARM_UP_TIMEOUT: _facts(
        ExitCode.ENGINE,
        "The engine is healthy, but did not answer a request within its deadline",
        "Read the log; on slow hardware raise `readiness.deadlines.warm_up_seconds`.",
    ),
    Cause.BAD_ANSWER: _facts(
        ExitCode.ENGINE,
        "The engine answered, but not with what was requested",
        "Check that `mode` is what the model is for.",
    ),
    Cause.GATE_FAILED: _facts(
        ExitCode.ENGINE,
        "The engine serves, but not as well as `readiness.prompts` and `compare` demand",
        "What served before serves on. Compare the two (`moorage diff`), or change the gate.",
    ),
    Cause.ADAPTERS_FIXED: _facts(
        ExitCode.BAD_INPUT,
        "The adapters of this release cannot be changed while it serves",
        "Set `lora_updates` in the spec and deploy it again.",
    ),
    Cause.ADAPTERS_FULL: _facts(
        ExitCode.BAD_INPUT,
        "There is no room for another adapter",
        "Unload one with `moorage lora unload`, or raise `lora_updates.max` and deploy again.",
    ),
    Cause.ADAPTER_NAME_TAKEN: _facts(
        ExitCode.BAD_INPUT,
        "Something else is served under the adapter's name",
        "Choose another name, or `moorage lora unload` the adapter that has it.",
    ),
    Cause.ADAPTER_REFUSED: _facts(
        ExitCode.ENGINE,
        "The engine does not take the adapter",
        "The engine's own words above say why; it serves on without the adapter.",
    ),
    Cause.UNKNOWN_ADAPTER: _facts(
        ExitCode.BAD_INPUT,
        "No such adapter is loaded",
        "`moorage lora list MODEL` shows what is.",
    ),
    Cause.LEDGER_UNAVAILABLE: _facts(
        ExitCode.MACHINE,
        "The ledger cannot be used",
        "Check MOORAGE_LEDGER_URL and that its file or server is there and writable.",
    ),
    Cause.LEDGER_DAMAGED: _facts(
        ExitCode.MACHINE,
        "The ledger is damaged",
        "`moorage ledger check` says where; `moorage ledger restore FILE` brings a backup back.",
    ),
    Cause.SERVER_UNAVAILABLE: _facts(
        ExitCode.MACHINE,
        "The Prefect server does not answer",
        "Check PREFECT_API_URL, and that the server is up.",
    ),
    Cause.SERVER_REFUSED: _facts(
        ExitCode.MACHINE,
        "The Prefect server did not take a request",
        "Check that PREFECT_API_URL is the API of a Prefect 3 server, that you are logged in to it,"
        " and that nobody has deleted the flow run.",
    ),
    Cause.STORE_UNWRITABLE: _facts(
        ExitCode.MACHINE,
        "The model store cannot be written",
        "Give this user the right to write under MOORAGE_HOME, or set it to another folder.",
    ),
    Cause.STEP_TIMEOUT: _facts(
        ExitCode.MACHINE,
        "A step took longer than any such step should",
        "See which step it was; the hub, the host or the ledger hardly answers.",
    ),
    Cause.INTERRUPTED: _facts(
        ExitCode.CANCELLED,
        "It was interrupted",
        "Say it again: what was left behind is cleaned up first.",
    ),
}
