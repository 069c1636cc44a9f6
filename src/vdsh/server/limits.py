"""How much a request may ask for, and how long it may take."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of a service."""

    k: int = 1000  # most hits of one search
    batch: int = 1000  # most texts or documents in one call
    text: int = 200_000  # most characters of one text
    body: int = 4 * 2**20  # most bytes of a request's body
    waiting: int = 5000  # most requests that a worker answers or keeps waiting at a time
    seconds: float = 30.0  # longest time for an answer
    # Longest time for the client to send its request, and to take the answer.
    client_seconds: float = 20.0
