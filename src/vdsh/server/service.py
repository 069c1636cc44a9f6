"""What the routes of an application share."""

from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from vdsh.server.limits import Limits
from vdsh.server.pool import StorePool


class Service(NamedTuple):
    """What an application serves: `request.app.state.service`, or an argument of type `Ask`.

    Attributes
    ----------
    pool : StorePool
    limits : Limits
    writable : bool
        Whether documents may be changed.
    """

    pool: StorePool
    limits: Limits
    writable: bool


async def _of(request: Request) -> Service:
    service: Service = request.app.state.service  # async, or FastAPI would start a thread for it
    return service


Ask = Annotated[Service, Depends(_of)]
