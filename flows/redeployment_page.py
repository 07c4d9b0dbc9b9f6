"""The page of a redeployment, as its run keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from prefect.runtime import flow_run
from prefect.utilities.urls import url_for

from moorage.operations.redeploy.outcome import Redeployed, summary
from moorage.reports.redeployment_report import Links, Wave, redeployment_page
from moorage.spec import slug
from tasks.live_page import LivePage


class Page:
    """What is shown of one run.

    Args:
        others: Models that are in no wave.
    """

    def __init__(self, others: Sequence[Redeployed] = ()) -> None:
        self._others = others
        self._live = LivePage("redeploy")

    async def told(self, waves: Sequence[Wave], ended: Sequence[Redeployed]) -> None:
        """Write it again, unless that was done a moment ago."""
        if self._live.is_due:
            await self.written(waves, [*ended, *self._others])

    async def written(self, waves: Sequence[Wave], ended: Sequence[Redeployed]) -> None:
        """Write it as it is now."""
        total = sum(len(wave.models) for wave in waves)
        done = sum(1 for one in ended if one.wave)
        page = redeployment_page(str(flow_run.name), waves, ended, _linked)
        percent = 100.0 * done / total if total else 100.0
        await self._live.write(page.markdown(), summary(ended), percent)


def _linked(one: Redeployed) -> Links:
    """Its own run, and the newest record of its releases."""
    if not one.flow_run:
        return Links()
    run = url_for("flow-run", one.flow_run) or ""
    # The only page of the UI that shows the newest artifact of a key has no address in Prefect.
    key = f"artifacts/key/release-{slug(one.model)}"
    record = run.replace(f"runs/flow-run/{one.flow_run}", key) if one.after else ""
    return Links(run=run, record=record)
