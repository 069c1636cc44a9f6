"""The hashing methods, by the name that `TextHasher` and the command line use."""

from vdsh.hashers.base import Hasher
from vdsh.hashers.vdsh import VDSH, VDSH_S, VDSH_SP

HASHERS: dict[str, type[Hasher]] = {
    "vdsh": VDSH,
    "vdsh-s": VDSH_S,
    "vdsh-sp": VDSH_SP,
}

__all__ = ["HASHERS", "VDSH", "VDSH_S", "VDSH_SP", "Hasher"]
