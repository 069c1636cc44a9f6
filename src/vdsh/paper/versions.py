"""Versions of what decides a cell's numbers besides its settings.

Whoever changes what a method learns, or how it is judged, raises a number here; the cells of an
older number are then not of today's code, and are run again. `tests/test_versions.py` notices when
the source has changed and nobody has decided.
"""

from typing import Any

from vdsh.paper.reference import METHODS, OURS

# Splits, counts, thresholds and measures. 1: each seed cut the whole corpus anew.
PROTOCOL = 2
# Ours, 1: epochs of version 0.1's training.
METHOD = dict.fromkeys(METHODS, 1) | dict.fromkeys(OURS, 2)


def version(model: str) -> dict[str, Any]:
    """Return what a cell of today's code says about itself.

    >>> version("lsh")
    {'method': 1, 'protocol': 2}
    """
    return {"method": METHOD[model], "protocol": PROTOCOL}
