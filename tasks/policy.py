"""Permission of a flow: the site's policy, and a person's approval.

Only the command line's own process can mark a flow as its own: `run_flow` of the CLI sets a context
variable. No parameter, tag, label, header or environment variable does, so no request to Prefect's
API can claim to be the command line. Every other flow counts as begun through the API.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from moorage.adapters.files.policy_file import (
    folders_of_adapter,
    load_policy,
    load_site_fleet,
    request_of,
    roots_of,
)
from moorage.adapters.ledger.locks import ASKS
from moorage.adapters.prefect.current_run import api_url, current_flow_run, run_logger
from moorage.adapters.prefect.events import ASKED, GRANTED, REFUSED, emit_model_event
from moorage.adapters.prefect.pages import run_page
from moorage.adapters.secrets import has_api
from moorage.adapters.system.process import command_line_user
from moorage.adapters.system.threads import hold_lock, in_thread, threaded, variable_scope
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet, at_site
from moorage.operations.redeploy.intent import Answer, Question
from moorage.placement.placement import Placement
from moorage.policy import judge
from moorage.policy.names import is_below
from moorage.policy.request import Channel, PolicyRefused, Submission, Usage, Violation, usage_of
from moorage.policy.rules import Rules
from moorage.releases.release import Release
from moorage.releases.states import SERVING, UNFINISHED
from moorage.spec import AdapterSpec, ModelSpec
from tasks.context import ledger, settings
from tasks.journal import journal

ALWAYS_ALLOWED = frozenset({"MOORAGE_LOCK_WAIT_SECONDS"})
"""Variables that a run may set for its own process."""

Asker = Callable[[Question], Answer | None]
"""Asks a person at a terminal; returns None without a terminal."""

_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)
_approvals: ContextVar[Mapping[str, str]] = ContextVar("approvals", default=MappingProxyType({}))
_approved: ContextVar[Release | None] = ContextVar("approved", default=None)

_channel: ContextVar[Channel] = ContextVar("channel", default=Channel.API)
_submission: ContextVar[Submission | None] = ContextVar("submission", default=None)
_fleets: ContextVar[tuple[Fleet, ...]] = ContextVar("fleets", default=())
_file_set: ContextVar[str] = ContextVar("file_set", default="")


def channel_scope(channel: Channel) -> AbstractContextManager[None]:
    """Mark flows that begin in this block, and their subflows, as begun through this channel."""
    return variable_scope(_channel, channel)


def allowed_scope(fleet: Fleet) -> AbstractContextManager[None]:
    """Do not judge this fleet again within the block; an outer fleet stays allowed, too."""
    return variable_scope(_fleets, (*_fleets.get(), fleet))


@contextmanager
def recorded_scope(submission: Submission, fleet: Fleet) -> Iterator[None]:
    """Let subflows deploy an earlier submission, on a fleet that is not judged again."""
    with variable_scope(_submission, submission), variable_scope(_fleets, (fleet,)):
        yield


def file_set_scope(name: str) -> AbstractContextManager[None]:
    """Assign the deploys of this block to a set of files; empty = to no set."""
    return variable_scope(_file_set, name)


def current_file_set() -> str:
    """The set of files that a deploy belongs to, as an outer run has set it; empty = no set."""
    return _file_set.get()


def is_from_command_line() -> bool:
    """Whether a command of this process began the flow; else it counts as begun through the API."""
    return _channel.get() == Channel.CLI


def current_submission() -> Submission:
    """The submission on record of the spec being deployed, else a submission by this run."""
    return _submission.get() or _submission_of_run()


def may_readdress(submission: Submission) -> bool:
    """Whether the fleet of this run may change how a release of this submission is reached.

    Only who submitted it on the command line may: others may lack the keys of that fleet. Through
    the API nobody proves who he is.
    """
    return is_from_command_line() and submission == _submission_of_run()


def site_addresses() -> dict[str, str]:
    """The address by name of each host of the worker's fleet."""
    fleet = load_site_fleet(load_policy(settings()), settings())
    return {host.name: host.access.url for host in fleet.hosts}


@threaded
def settled_fleet(fleet: Fleet, files: str = "") -> Fleet:
    """The fleet that a run works on: its own parameter, else the site's fleet.

    Refuses a fleet, or a folder of specs (`files`), that the policy does not allow the run.
    """
    fleet, found = _fleet_of_run(fleet)
    policy, channel = load_policy(settings()), _channel.get()
    roots = roots_of(policy.policy.rules(channel).spec_folders, settings())
    if files and not is_below(roots, roots_of([files], settings())[0]):
        found += judge.parameter_violations(policy, channel, spec_folders=files)
    _require_none(found)
    return fleet


@threaded
def require_allowed(spec: ModelSpec, fleet: Fleet, applied_from: str = "") -> Fleet:
    """Refuse a spec that the policy does not allow; returns the site's hosts that it may use."""
    fleet, found = _fleet_of_run(fleet)
    policy, submission = load_policy(settings()), current_submission()
    rules = policy.policy.rules(submission.channel)
    known = {"applied_from": applied_from, "others": _others(spec, submission, rules)}
    request = request_of(spec, fleet, submission, policy, settings()).model_copy(update=known)
    _require_none((*found, *judge.violations(policy, request)))
    allowed = judge.allowed_hosts(rules, fleet)
    return at_site(allowed if allowed.hosts else fleet, settings().site)


@threaded
def require_allowed_adapter(adapter: AdapterSpec) -> None:
    """Refuse an adapter from a folder outside the policy's `file_roots`."""
    channel = _channel.get()
    _require_own_environment(channel)
    policy = load_policy(settings())
    roots = roots_of(policy.policy.rules(channel).file_roots, settings())
    found = judge.folder_findings(folders_of_adapter(adapter), roots)
    _require_none(judge.as_violations(policy, channel, found))


@threaded
def require_allowed_size(spec: ModelSpec, placement: Placement, submission: Submission) -> None:
    """Refuse a placement that exceeds the policy's limits for a model or its owner."""
    policy = load_policy(settings())
    rules = policy.policy.rules(submission.channel)
    found = judge.size_findings(rules, usage_of(spec, placement), _others(spec, submission, rules))
    _require_none(judge.as_violations(policy, submission.channel, found))


def _fleet_of_run(fleet: Fleet) -> tuple[Fleet, tuple[Violation, ...]]:
    """The fleet of a run, and the policy violations of a fleet that it brought."""
    if fleet in _fleets.get():
        return fleet, ()
    channel = _channel.get()
    _require_own_environment(channel)
    policy = load_policy(settings())
    if channel == Channel.CLI and fleet == Fleet():
        return fleet, ()
    own = load_site_fleet(policy, settings())
    if fleet in (Fleet(), own):
        return own, ()
    if policy.policy.rules(channel).own_fleet:
        return fleet, ()
    hosts = ", ".join(host.name for host in fleet.hosts)
    return fleet, judge.parameter_violations(policy, channel, own_fleet=hosts)


def _others(spec: ModelSpec, submission: Submission, rules: Rules) -> Usage:
    """Usage of the owner's other models, if the policy limits owners; else zero."""
    if rules.owner_replicas is None and rules.owner_accelerators is None:
        return Usage()
    rows = ledger().releases.in_states(SERVING | UNFINISHED)
    releases = [row.release for row in rows if row.model != spec.name and row.release]
    own = (one for one in releases if one.submission == submission)
    return sum((usage_of(one.spec, one.placement) for one in own), Usage())


def _require_none(found: Sequence[Violation]) -> None:
    if found:
        raise PolicyRefused(tuple(found))


def _require_own_environment(channel: Channel) -> None:
    """Refuse an API run with its own job variables, which could set the path of the policy.

    A worker passes `job_variables` of a run to its process. Those of the deployment and of the work
    pool belong to the site and are allowed.
    """
    run = current_flow_run()
    brought = (run.job_variables if run else None) or {}
    variables = brought.get("env") or {}
    found = {*brought} - {"env"} | {f"env.{name}" for name in {*variables} - ALWAYS_ALLOWED}
    if channel == Channel.API and found:
        raise Failure(
            Cause.POLICY_REFUSED,
            f"job_variables: found {', '.join(sorted(found))}; a run that comes through the API"
            f" may set env.{', env.'.join(ALWAYS_ALLOWED)} only",
            suggestion="Set them in the deployment or the work pool.",
        )


def _submission_of_run() -> Submission:
    """A submission by this run, also while it deploys an earlier one again.

    Its owner is this machine's user, or the run's creator in Prefect. All unknown creators count as
    one owner and share its limits.
    """
    if is_from_command_line():
        return Submission(channel=Channel.CLI, owner=command_line_user().account)
    run = current_flow_run()
    creator = run.created_by.display_value if run and run.created_by else None
    return Submission(channel=Channel.API, owner=creator or "api")


def asking(asker: Asker) -> AbstractContextManager[None]:
    """Let the flows of this block ask at a terminal when there is no lasting Prefect server."""
    return variable_scope(_asker, asker)


def granted(models: Sequence[str], approval: str) -> AbstractContextManager[None]:
    """Let the flows of this block deploy these models without asking again."""
    return variable_scope(_approvals, {**_approvals.get(), **dict.fromkeys(models, approval)})


@contextmanager
def granted_as_it_ran(release: Release) -> Iterator[None]:
    """Let the flows of this block deploy a release again without asking, exactly as it ran.

    Nothing that has moved since comes along, so nobody has to agree.
    """
    models = [release.model] if release.spec.redeploy.needs_approval else []
    approval = release.approval or f"{release.id} ran before"
    with granted(models, approval), variable_scope(_approved, release):
        yield


def approved_release() -> Release | None:
    """The release that an outer flow deploys again exactly as it ran; None = as its spec says."""
    return _approved.get()


def given_approval(model: str) -> str:
    """The approval of the model that a person has given in an outer flow; empty = none."""
    return _approvals.get().get(model, "")


async def ask(question: Question) -> str:
    """Wait until a person approves; returns the approval in one line.

    Raises:
        Failure: `APPROVAL_REFUSED`, `APPROVAL_TIMED_OUT`, or `APPROVAL_IMPOSSIBLE` with neither a
            lasting Prefect server nor a terminal.
    """
    from moorage.adapters.prefect.approvals import ask_on_server  # noqa: PLC0415  (imports Prefect)

    emit_model_event(ASKED, question.models, seconds=question.seconds, why="waits for approval")
    if has_api():
        run = current_flow_run()
        identity = str(run.id) if run else ""
        invitation = _invitation(question, identity)
        with journal() as opened:  # a run over many models has no open journal here
            opened.tell(invitation)
        # Held so that others can see that this process is gone, and nobody would get an answer.
        name = f"{ASKS}{identity}"
        async with hold_lock(
            ledger().locks.holding(name, wait_seconds=0, note=f"flow run {identity}")
        ):
            answer: Answer | None = await ask_on_server(question, invitation)
    else:
        asker = _asker.get()
        answer = await in_thread(asker, question) if asker else None
    if answer is None:
        raise Failure(Cause.APPROVAL_IMPOSSIBLE, ", ".join(question.models))
    note = f": {answer.note}" if answer.note else ""
    if not answer.approve:
        emit_model_event(REFUSED, question.models, why=f"refused{note}")
        raise Failure(Cause.APPROVAL_REFUSED, f"{', '.join(question.models)}{note}")
    emit_model_event(GRANTED, question.models, why=f"approved{note}")
    run_logger().info("approved%s", note)
    return answer.approval


def _invitation(question: Question, identity: str) -> str:
    named = question.models[0] if len(question.models) == 1 else identity[:8]
    page = run_page(api_url(), identity)
    button = f", or *Resume* in the menu of {page}" if page else ""
    return f"waits for approval of {', '.join(question.models)}: `moorage approve {named}`{button}"
