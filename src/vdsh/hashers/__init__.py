"""The hashing methods, by the name that `TextHasher` and the command line use."""

from importlib.util import find_spec

from vdsh.hashers.base import Hasher
from vdsh.hashers.baselines.itq import ITQ
from vdsh.hashers.baselines.ksh import KSH
from vdsh.hashers.baselines.lsh import LSH
from vdsh.hashers.baselines.rbm import StackedRBM
from vdsh.hashers.baselines.selftaught import SelfTaughtHashing
from vdsh.hashers.baselines.shttm import SHTTM
from vdsh.hashers.baselines.spectral import SpectralHashing
from vdsh.hashers.linear import LinearHashing
from vdsh.hashers.vdsh import VDSH, VDSH_S, VDSH_SP
from vdsh.hashers.vector_hasher import VectorHasher

HASHERS: dict[str, type[Hasher]] = {
    "linear": LinearHashing,
    "vdsh": VDSH,
    "vdsh-s": VDSH_S,
    "vdsh-sp": VDSH_SP,
    "rbm": StackedRBM,
    "ksh": KSH,
    "shttm": SHTTM,
    "lsh": LSH,
    "sph": SpectralHashing,
    "sth": SelfTaughtHashing,
    "itq": ITQ,
}


def default_method() -> str:
    """Name the method to learn with where none is asked for: "vdsh", or "linear" without torch.

    Also where there are labels: codes that sort by class are worse to search by typed words.
    """
    try:
        return "vdsh" if find_spec("torch") else "linear"
    except ImportError:
        return "linear"


__all__ = [
    "HASHERS",
    "ITQ",
    "KSH",
    "LSH",
    "SHTTM",
    "VDSH",
    "VDSH_S",
    "VDSH_SP",
    "Hasher",
    "LinearHashing",
    "SelfTaughtHashing",
    "SpectralHashing",
    "StackedRBM",
    "VectorHasher",
    "default_method",
]
