"""What each method learns: its arrays, of which shapes and types.

`check_learned` holds a model folder to it before any kernel runs over its arrays.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import check_n_bits, check_threshold
from vdsh.text.weighting import WEIGHTINGS

if TYPE_CHECKING:
    from vdsh.hashers.base import Hasher

Arrays = dict[str, NDArray[Any]]

# Sizes by name; one that is not among `_sizes` is what the first array has. float32 unless said.
_ALL = {"thresholds_": "bits", "bit_balance_": "bits", "idf_": "terms"}
_LINEAR = {"W_": "terms bits", "b_": "bits"}
_NETWORK = {"W1_": "terms hidden", "b1_": "hidden", "W2_": "hidden hidden", "b2_": "hidden"}
_NETWORK |= {"W3_": "hidden bits", "b3_": "bits"}
_VDSH = _NETWORK | {"W4_": "hidden bits", "b4_": "bits", "G_": "decoder terms", "b_words_": "terms"}
_VDSH |= {"D_": "bits decoder", "b_decoder_": "decoder"}
_VDSH_S = _VDSH | {"U_": "bits labels", "b_labels_": "labels"}
_VDSH_SP = {"W5_": "hidden bits", "b5_": "bits", "W6_": "hidden bits", "b6_": "bits"}
ARRAYS: dict[str, dict[str, str]] = {
    "VDSH": _VDSH,
    "VDSH_S": _VDSH_S,
    "VDSH_SP": _VDSH_S | _VDSH_SP,
    "StackedRBM": _NETWORK,
    "KSH": {
        "anchor_values_": "entries",
        "anchor_terms_": "entries int32",
        "anchor_starts_": "starts int32",
        "kernel_means_": "anchors",
        "projection_": "anchors bits",
    },
    "SHTTM": _LINEAR | {"label_vectors_": "labels bits"},
    "LSH": {"hyperplanes_": "terms bits"},
    "SpectralHashing": {
        "components_": "terms components",
        "corner_": "components",
        "axes_": "bits int64",
        "frequencies_": "bits",
    },
    "SelfTaughtHashing": _LINEAR | {"agreement_": "bits"},
    "ITQ": _LINEAR | {"rotation_": "bits bits"},
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


def check_learned(hasher: "Hasher", arrays: Arrays, values: dict[str, Any]) -> None:
    """Raise a ValueError unless a hasher of these settings can have learned this."""
    check_n_bits(hasher.n_bits)
    check_threshold(hasher.threshold)
    if hasher.weighting not in WEIGHTINGS:
        raise ValueError(f"there is no weighting {hasher.weighting!r}")
    for name, value in values.items():
        _check_value(hasher, name, value)
    if type(hasher).__name__ == "KSH" and not values["bandwidth_"] > 0:
        raise ValueError(f"bandwidth_ is {values['bandwidth_']}")
    wanted = _wanted(hasher)
    if set(arrays) != set(wanted):
        raise ValueError(f"its weights are {sorted(arrays)} instead of {sorted(wanted)}")
    sizes = _sizes(hasher, values)
    for name, shape in wanted.items():
        _check_array(name, arrays[name], shape.split(), sizes)
    _check_indices(arrays, sizes)


def _wanted(hasher: "Hasher") -> dict[str, str]:
    absent = set() if hasher.weighting == "tfidf" else {"idf_"}
    if not getattr(hasher, "decoder_size", 0):
        absent |= {"D_", "b_decoder_"}
    wanted = _ALL | ARRAYS[type(hasher).__name__]
    return {name: shape for name, shape in wanted.items() if name not in absent}


def _sizes(hasher: "Hasher", values: dict[str, Any]) -> dict[str, int]:
    sizes = {"bits": hasher.n_bits, "terms": values["n_features_in_"]}
    sizes["decoder"] = getattr(hasher, "decoder_size", 0) or hasher.n_bits
    if hasher.supervised:
        sizes["labels"] = len(values["classes_"])
    return sizes


def _check_value(hasher: "Hasher", name: str, value: Any) -> None:
    if name.startswith("_") or not name.endswith("_") or hasattr(type(hasher), name):
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
