from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.sites import at_site


def a_host(name: str, **labels: str) -> Host:
    return Host(name=name, labels=labels)


FLEET = Fleet(hosts=(a_host("a", site="east"), a_host("b", site="west"), a_host("c", pool="x")))


@pytest.mark.parametrize(
    ("site", "names"), [("", "abc"), ("east", "ac"), ("west", "bc"), ("north", "c")]
)
def test_a_site_has_its_own_hosts_and_those_that_name_none(site: str, names: str) -> None:
    found = at_site(FLEET, site)
    assert "".join(host.name for host in found.hosts) == names
    assert found.model_copy(update={"hosts": FLEET.hosts}) == FLEET


def test_this_machine_is_at_every_site() -> None:
    assert at_site(Fleet(), "east") == Fleet()


def test_a_site_without_any_host_is_told_with_the_sites_that_there_are() -> None:
    fleet = Fleet(hosts=FLEET.hosts[:2])
    with pytest.raises(Failure, match=r"at the site north.*hosts at east, west only") as caught:
        at_site(fleet, "north")
    assert caught.value.cause is Cause.BAD_FLEET
    assert "work queue" in caught.value.suggestion
