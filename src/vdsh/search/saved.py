"""An index as arrays and back: what `HammingIndex.save` writes and `open` reads."""

from pathlib import Path
from typing import Any

import numpy as np

from vdsh.search.files import Arrays, damaged, map_arrays
from vdsh.search.id_kinds import ids_from_file
from vdsh.search.ids import Ids
from vdsh.search.rows import RowIndex
from vdsh.search.segment import NO_OFFSETS, Segment
from vdsh.search.strips import STRIP, Strips

# What each array may be: its types and its number of dimensions.
KINDS = {
    "strips": (("uint8",), 3),
    "offsets": (("uint32",), 1),
    "members": (("uint32",), 1),
    "alive": (("bool",), 1),
    "id_range": (("int64",), 1),
    "ids": (("int32", "int64"), 1),
    "id_text": (("uint8",), 1),
    "id_ends": (("int64",), 1),
    "id_keys": (("int64",), 1),
}


def to_arrays(rows: RowIndex, ids: Ids, next_id: int | None) -> tuple[dict[str, Any], Arrays]:
    """Describe an index by facts for a header and arrays."""
    main = rows.settled()
    facts = {"n_codes": len(main.strips), "ids": ids.kind, "next_id": next_id}
    arrays: Arrays = {"strips": main.strips.trimmed()}
    if main.grouped:
        arrays |= {"offsets": main.offsets, "members": main.members}
    if len(rows) < rows.n_rows:
        arrays["alive"] = rows.alive
    return facts, arrays | ids.arrays()


def from_arrays(path: Path, threads: int | None) -> tuple[RowIndex, Ids, int | None]:
    """Read what `to_arrays` described, from a mapped file."""
    facts, arrays = map_arrays(path)
    try:
        _check_kinds(facts, arrays)
        strips = Strips(arrays["strips"].shape[1], arrays["strips"], facts["n_codes"])
        offsets, members = arrays.get("offsets", NO_OFFSETS), arrays.get("members", NO_OFFSETS)
        main, alive = Segment(strips, 0, offsets, members), arrays.get("alive")
        _check_segment(main)
        _check_id_text(arrays)
        ids = ids_from_file(facts["ids"], arrays)
        lengths = {len(ids), len(arrays.get("id_keys", ids)), len(ids if alive is None else alive)}
        _check(lengths == {main.n_rows})
    except (KeyError, IndexError, ValueError, TypeError, OverflowError) as error:
        raise damaged(path) from error
    rows = RowIndex.from_segment(main, alive, ids.keys(), threads=threads)
    return rows, ids, facts["next_id"]


def _check(holds: object) -> None:
    if not holds:
        raise ValueError("the arrays do not fit each other")


def _check_kinds(facts: dict[str, Any], arrays: Arrays) -> None:
    next_id = facts["next_id"]
    _check(isinstance(facts["n_codes"], int))
    _check(next_id is None or (isinstance(next_id, int) and abs(next_id) < 2**63))
    for name, array in arrays.items():
        dtypes, n_dimensions = KINDS[name]
        _check(array.dtype.name in dtypes and array.ndim == n_dimensions)
    _check("alive" not in arrays or not (arrays["alive"].view(np.uint8) > 1).any())


def _check_segment(main: Segment) -> None:
    """See that kernels can run over a segment without leaving its arrays."""
    shape, n_codes = main.strips.data.shape, len(main.strips)
    _check(shape[1] and shape[2] == STRIP and 0 <= n_codes <= shape[0] * STRIP)
    if main.grouped:
        offsets, members = main.offsets, main.members
        _check(len(offsets) == n_codes + 1 and offsets[0] == 0 and offsets[-1] == len(members))
        _check((offsets[1:] >= offsets[:-1]).all())
        _check(not len(members) or members.max() < len(members))
        _check((np.bincount(members, minlength=len(members)) == 1).all())  # each row once


def _check_id_text(arrays: Arrays) -> None:
    ends = arrays.get("id_ends", NO_OFFSETS)
    if len(ends):
        _check(ends[0] >= 0 and ends[-1] == len(arrays["id_text"]))
        _check((ends[1:] >= ends[:-1]).all())
