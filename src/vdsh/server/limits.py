"""How much a request may ask for, and how long it may take."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of a service.

    Attributes
    ----------
    k : int
        Most hits of one search.
    batch : int
        Most texts or documents in one call.
    text : int
        Most characters of one text.
    body : int
        Most bytes of a request's body.
    waiting : int
        Most requests that a worker answers or keeps waiting at a time.
    seconds : float
        Longest time for an answer.
    client_seconds : float
        Longest time for the client to send its request, and to take the answer.
    """

    k: int = 1000
    batch: int = 1000
    text: int = 200_000
    body: int = 16 * 2**20
    waiting: int = 5000
    seconds: float = 30.0
    client_seconds: float = 20.0
