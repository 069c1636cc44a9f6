"""The VDSH family: what a user sees (`estimators`), the network, its objective, its training."""

from vdsh.hashers.vdsh.estimators import VDSH, VDSH_S, VDSH_SP

__all__ = ["VDSH", "VDSH_S", "VDSH_SP"]
