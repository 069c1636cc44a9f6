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
        strips = Strips(arrays["strips"].shape[1], arrays["strips"], facts["n_codes"])
        offsets, members = arrays.get("offsets", NO_OFFSETS), arrays.get("members", NO_OFFSETS)
        main = Segment(strips, 0, offsets, members)
        ids = ids_from_file(facts["ids"], arrays)
        next_id = facts["next_id"]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise damaged(path) from error
    alive = arrays.get("alive")
    if not (
        _sound(main) and len(ids) == main.n_rows and len(arrays.get("id_keys", ids)) == len(ids)
    ):
        raise damaged(path)
    if alive is not None and alive.shape != (main.n_rows,):
        raise damaged(path)
    return RowIndex.from_segment(main, alive, ids.keys(), threads=threads), ids, next_id


def _sound(main: Segment) -> bool:
    """Say whether kernels can run over a segment without leaving its arrays."""
    shape, n_codes = main.strips.data.shape, len(main.strips)
    if len(shape) != 3 or shape[2] != STRIP or not 0 <= n_codes <= shape[0] * STRIP:
        return False
    if not main.grouped:
        return True
    offsets, members = main.offsets, main.members
    in_step = len(offsets) == n_codes + 1 and offsets[0] == 0 and offsets[-1] == len(members)
    ascending = bool(np.all(offsets[1:] >= offsets[:-1]))
    return bool(in_step and ascending and (not len(members) or members.max() < len(members)))
