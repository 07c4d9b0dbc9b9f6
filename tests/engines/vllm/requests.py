"""Requests for vLLM: a test names only what it is about."""

from __future__ import annotations

from typing import Any

from moorage.common.units import GIB
from moorage.engines.flags import Flag
from moorage.engines.request import LaunchRequest, Peer
from moorage.placement.placement import Links, Seat
from moorage.spec import RuntimeName
from tests.builders import LEDGER, a_host, a_model, a_profile, a_spec, an_accelerator, an_image

LINKS = Links(rpc=40001, master=40002, own=40003, joining=40004)
RAY = Links(rpc=40001, own=40003, ray=(41000, 41030))


def a_request(
    *words: str,
    counts: tuple[int, ...] = (1,),
    position: int = 0,
    kind: str = "cuda",
    family: str = "",
    version: str = "0.32.0",
    env: tuple[str, ...] = (),
    seat: dict[str, Any] | None = None,
    caches: str = "",
    **wish: Any,
) -> LaunchRequest:
    """A seat of a replica on hosts with so many accelerators each.

    Args:
        words: The user's arguments.
        position: Of the seat's host among them.
        env: Names of the user's variables.
        seat: Fields of all seats.
        wish: Fields of the spec.
    """
    engine = {"args": list(words), "env": dict.fromkeys(env, "x")}
    values = {
        "replica": 0,
        "runtime": RuntimeName.DOCKER,
        "accelerator_type": kind,
        "port": 40000,
        "links": LINKS if len(counts) > 1 else None,
        "reason": "",
    }
    seats = [
        Seat.model_validate(
            {
                **values,
                "position": at,
                "host": f"h{at}",
                "accelerators": tuple(range(count)),
                "accelerator_bytes": (GIB,) * count,
                **(seat or {}),
            }
        )
        for at, count in enumerate(counts)
    ]
    own = (an_accelerator(type=kind, index=at, family=family) for at in range(counts[position]))
    host = a_host(accelerators=tuple(own), interface="eth0")
    peers = [
        Peer(seat=one, host=host.model_copy(update={"bind": f"10.0.0.{at}"}))
        for at, one in enumerate(seats, 1)
    ]
    return LaunchRequest(
        spec=a_spec(**{"engine": engine, **wish}),
        profile=a_profile(),
        seat=seats[position],
        host=host,
        release="tiny.v1",
        ledger=LEDGER,
        model=a_model(path="/store/tiny", files=()),
        image=an_image(engine_version=version),
        caches=caches,
        peers=tuple(peers) if len(peers) > 1 else (),
    )


def line(flags: tuple[Flag, ...]) -> str:
    return " ".join(token for flag in flags for token in flag.tokens)
