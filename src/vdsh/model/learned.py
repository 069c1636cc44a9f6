"""What each method learns: a model folder is held to it before a kernel runs over its arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import check_n_bits, check_threshold
from vdsh.model.encoders import ENCODERS, Network
from vdsh.model.network import Decoder
from vdsh.text.counts import WEIGHTINGS, WITH_FREQUENCIES

Arrays = dict[str, NDArray[Any]]

_ALL = {"thresholds_": "bits", "bit_balance_": "bits", "idf_": "terms"}
# What no encoder or decoder uses.
_BESIDE = {
    "shttm": {"label_vectors_": "labels bits"},
    "sth": {"agreement_": "bits"},
    "itq": {"rotation_": "components bits"},
}
NUMBERS = (int, float)
# The rest of what is learned, as JSON has it; in a list, all of one type.
VALUES: dict[str, Any] = {
    "n_features_in_": int,
    "n_distinct_codes_": int,
    "best_epoch_": int,
    "selected_on_": str,
    "interrupted_": bool,
    "bandwidth_": NUMBERS,
    "calibration_": dict,
    "classes_": [str],
    "history_": [dict],
    "losses_": [NUMBERS],
    "unused_bits_": [int],
    "duplicated_bits_": [list],
}


def check_learned(
    name: str, settings: Mapping[str, Any], arrays: Arrays, values: Mapping[str, Any]
) -> None:
    """Raise a ValueError unless a method of these settings can have learned this."""
    n_bits = check_n_bits(settings["n_bits"])
    check_threshold(settings["threshold"])
    if settings["weighting"] not in WEIGHTINGS:
        raise ValueError(f"there is no weighting {settings['weighting']!r}")
    for key, value in values.items():
        _check_value(settings, key, value)
    if name == "ksh" and not values["bandwidth_"] > 0:
        raise ValueError(f"bandwidth_ is {values['bandwidth_']}")
    wanted = _wanted(name, settings)
    if set(arrays) != set(wanted):
        raise ValueError(f"its weights are {sorted(arrays)} instead of {sorted(wanted)}")
    sizes = {"bits": n_bits, "terms": values["n_features_in_"]}
    sizes["decoder"] = settings.get("decoder_size") or n_bits
    if "classes_" in values:
        sizes["labels"] = len(values["classes_"])
    for key, shape in wanted.items():
        _check_array(key, arrays[key], shape.split(), sizes)
    if "sigma_" in arrays and not (arrays["sigma_"] > 0).all():
        raise ValueError("sigma_ holds deviations that are not positive")
    _check_indices(arrays, sizes)


def _wanted(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Give the shapes of all arrays that a method of these settings learns; see `Learned`."""
    encoder = ENCODERS[name]
    shapes = _ALL | encoder.shapes() | _BESIDE.get(name, {})
    shapes |= Decoder.shapes() if encoder is Network else {}
    is_there = {
        "idf_": settings["weighting"] in WITH_FREQUENCIES,
        "D_ b_decoder_": settings.get("decoder_size"),
        "U_ b_labels_": name != "vdsh",
        "W5_ b5_ W6_ b6_": name == "vdsh-sp",
    }
    absent = {key for keys, there in is_there.items() if not there for key in keys.split()}
    return {key: shape for key, shape in shapes.items() if key not in absent}


def _check_value(settings: Mapping[str, Any], name: str, value: Any) -> None:
    if name not in VALUES and name.removesuffix("_") not in settings:
        raise ValueError(f"nothing that is learned has the name {name!r}")
    kind = VALUES.get(name, object)
    items, kind = (value, kind[0]) if isinstance(kind, list) else ([value], kind)
    if not isinstance(items, list) or not all(isinstance(item, kind) for item in items):
        raise ValueError(f"{name} has the wrong type")
    numbers = [item for item in items if isinstance(item, NUMBERS)]
    if not np.isfinite(np.array(numbers, np.float64)).all():
        raise ValueError(f"{name} is not finite")


def _check_array(name: str, array: NDArray[Any], shape: list[str], sizes: dict[str, int]) -> None:
    *shape, dtype = shape if shape[-1].startswith("int") else [*shape, "float32"]
    is_right = array.dtype == dtype and array.ndim == len(shape)
    if is_right:
        is_right = all(sizes.setdefault(n, m) == m for n, m in zip(shape, array.shape, strict=True))
    if not is_right:
        given = f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"{name} is {given}, which does not fit the rest")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")


def _check_indices(arrays: Arrays, sizes: dict[str, int]) -> None:
    """See that what counts positions in other arrays stays inside them."""
    for name, size in (("anchor_terms_", "terms"), ("axes_", "components")):
        if (given := arrays.get(name)) is not None and given.size:
            if given.min() < 0 or given.max() >= sizes[size]:
                raise ValueError(f"{name} points beyond the {size}")
    if (starts := arrays.get("anchor_starts_")) is not None:
        bounds = [0, sizes["entries"]]
        in_step = len(starts) == sizes["anchors"] + 1 and starts[[0, -1]].tolist() == bounds
        if not in_step or (np.diff(starts) < 0).any():
            raise ValueError("anchor_starts_ does not divide the entries among the anchors")
