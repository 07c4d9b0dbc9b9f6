"""Forms of runs on Prefect's server, with some fields filled in."""

from collections.abc import Iterable

from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound

from moorage.adapters.prefect.current_run import api_url
from moorage.adapters.prefect.pages import form_page
from moorage.reports.next_steps import Form


async def form_links(forms: Iterable[Form]) -> dict[str, str]:
    """The addresses of forms by label, without forms whose deployment does not exist."""
    found = {}
    async with get_client() as client:
        for form in forms:
            try:
                deployment = await client.read_deployment_by_name(form.deployment)
            except ObjectNotFound:
                continue
            # A form with parameters in its address ignores the defaults of its deployment.
            filled = {**deployment.parameters, **form.parameters}
            found[form.label] = form_page(api_url(), str(deployment.id), filled)
    return found
