"""What is to be done, decided on everything that is known."""

from __future__ import annotations

from moorage.operations.reconcile.actions import Action, Deed
from moorage.operations.reconcile.facts import World
from moorage.operations.reconcile.release_status import Case
from moorage.operations.reconcile.releases import about
from moorage.operations.reconcile.strays import about_strays


def decide(world: World) -> tuple[Action, ...]:
    """What makes ledger and hosts one again: releases in order of creation, then strays.

    Once all of it is done, deciding again on what is then known asks for nothing but patience.
    """
    releases = [action for own in world.releases for action in about(Case(world, own))]
    back = {action.release for action in releases if action.deed == Deed.BRING_BACK}
    # Whoever is brought back undoes first what it had made room for.
    undone = {own.successor for own in world.releases if own.id in back}
    kept = (one for one in releases if one.deed != Deed.UNDO or one.release not in undone)
    return (*kept, *about_strays(world))
