"""A store on another machine: the verbs of a `Store`, asked of `vdsh serve`.

`client` has the verbs, `connection` speaks HTTP: one connection that is kept open, and requests
that get lost are sent again.
"""

from vdsh.client.client import Client

__all__ = ["Client"]
