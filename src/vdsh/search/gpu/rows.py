"""`GpuRows`: exact Hamming search over numbered rows in the memory of a GPU."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.search.checks import in_words
from vdsh.search.gpu.scan import (
    NOTHING,
    PLACE_BITS,
    UNIT,
    Span,
    fill,
    n_words,
    power_of_two,
    scan,
    to_codes,
    to_words,
)
from vdsh.search.parts import Mask, RowHits, Rows
from vdsh.search.rows import NumberedRows, RowIndex

FIRST_SAMPLE = 1 << 14  # codes; each sample bounds what the next has to keep
GROWTH_OF_MANY = 1 << 3  # from one to the next, for many queries
MANY = 12  # queries
LEAST_KEPT = 1 << 16  # of a query, in one scan
LOOKED_AT = 1 << 13  # of a sample's hits: any of them bound the distance
MOST_KEPT = 1 << 27  # of all queries together
MOST_QUERIES = 1024  # at a time


class GpuRows(NumberedRows):
    """What `RowIndex` is on a CPU; answers are the same to the last tie.

    Codes lie in the order of their keys, so that of equal distances the first place is the first
    answer. A search goes up through samples: the k-th distance in a small one bounds what has to
    be kept of a larger one, and the last scan reads all codes once.
    """

    def __init__(self, codes: Codes, device: str = "cuda") -> None:
        super().__init__(int(codes.shape[1]))
        self.device = check_device(device)
        self.n_rows = 0
        self._planes = self._new_planes(len(codes))
        self._order: NDArray[np.int64] | None = None  # the row at each place, if not the same
        self._keys: NDArray[np.int64] | None = None
        self._mask: Tensor | None = None  # which places are not tombstones, once it is asked for
        self.append(codes)

    @property
    def nbytes(self) -> int:
        """Bytes of the GPU's memory for codes."""
        return int(self._planes.nbytes)

    @property
    def keys(self) -> NDArray[np.int64] | None:
        """What orders equal distances; None means row numbers."""
        return self._keys

    @keys.setter
    def keys(self, keys: NDArray[np.int64] | None) -> None:
        self._keys, self._mask = keys, None
        if keys is None and self._order is None:
            return
        everything = np.arange(self.n_rows)
        wanted = everything if keys is None else np.argsort(keys, kind="stable")
        places = np.empty_like(wanted)
        places[everything if self._order is None else self._order] = everything
        at = torch.from_numpy(places[wanted]).to(self.device)
        for plane in self._planes:
            plane[: self.n_rows] = plane[at]
        self._order = None if np.array_equal(wanted, everything) else wanted

    def append(self, codes: Codes) -> range:
        """Add codes and return their row numbers."""
        first, n_rows = self.n_rows, self.n_rows + len(codes)
        if n_rows > self._planes.shape[1]:
            planes = self._new_planes(max(n_rows, self._planes.shape[1] * 5 // 4))
            planes[:, :first] = self._planes[:, :first]
            self._planes = planes
        fill(self._planes, first, codes)
        self.n_rows, self._mask = n_rows, None
        self._appended(len(codes))
        if self._order is not None:
            self._order = np.append(self._order, np.arange(first, n_rows))
        return range(first, n_rows)

    def remove(self, rows: Rows) -> None:
        """Remove rows; those removed before are passed over."""
        super().remove(rows)
        self._mask = None

    def codes(self) -> Codes:
        """Return the codes of all rows, removed ones included, in row order."""
        codes = to_codes(self._planes[:, : self.n_rows], self.n_bytes)
        if self._order is None:
            return codes
        ordered = np.empty_like(codes)
        ordered[self._order] = codes
        return ordered

    def take(self, rows: Rows) -> Codes:
        """Return the codes of some rows."""
        places = rows if self._order is None else np.argsort(self._order)[rows]
        at = torch.from_numpy(places).to(self.device)
        return to_codes(self._planes[:, at], self.n_bytes)

    def compact(self) -> Rows:
        """Forget removed rows, numbering the others anew; return their old numbers in order."""
        kept, keys, codes = np.flatnonzero(self.alive), self._keys, self.codes()
        self.__init__(codes[kept], str(self.device))  # type: ignore[misc]
        self.keys = None if keys is None else keys[kept]
        return kept

    def on_cpu(self) -> RowIndex:
        """Make the same index in main memory."""
        rows = RowIndex(self.codes())
        rows.remove(np.flatnonzero(~self.alive))
        rows.keys = self._keys
        return rows

    def search(self, queries: Codes, k: int, *, allowed: Mask | None = None) -> RowHits:
        """Find the k nearest rows of each query, ties by key; see `RowIndex.search`."""
        mask, n_allowed = self._allowed(allowed)
        k = min(k, n_allowed)
        if k == 0 or not len(queries):
            shape = len(queries), k
            return RowHits(np.empty(shape, np.int64), np.empty(shape, np.int32))
        kept = min(power_of_two(256 * k), power_of_two(self.n_rows + UNIT))
        kept = max(LEAST_KEPT, kept)
        parts = [self._nearest(asked, k, kept, mask) for asked in self._batches(queries, kept)]
        return self._hits(torch.cat(parts))

    def within(self, queries: Codes, radius: int, *, allowed: Mask | None = None) -> list[RowHits]:
        """Find every row within `radius` of each query, nearest first, ties by key."""
        mask, _ = self._allowed(allowed)
        hits: list[RowHits] = []
        for asked in self._batches(queries, LEAST_KEPT):
            bounds = self._planes.new_full((len(asked),), min(radius, self.n_bits))
            parts = [found for found, _ in self._spans(asked, bounds, LEAST_KEPT, mask)]
            found = torch.cat([self._nothing(asked), *parts], dim=1).sort(dim=1).values
            n_found = (found != NOTHING).sum(1).tolist()
            hits += [self._hits(one[:n]) for one, n in zip(found, n_found, strict=True)]
        return hits

    def _nearest(self, asked: Tensor, k: int, kept: int, mask: Tensor | None) -> Tensor:
        """Return the k nearest of each query, packed, nearest first."""
        bounds = self._bounds(asked, k, kept, mask)
        best = self._nothing(asked)
        for found, is_last in self._spans(asked, bounds, kept, mask):
            best = torch.cat([best, found], dim=1)
            best = best.topk(min(k, best.shape[1]), dim=1, largest=False).values
            if not is_last and best.shape[1] == k:  # in place: those that tie come later
                bounds.copy_(_lower(bounds + 1, best[:, -1]) - 1)
        return best

    def _bounds(self, asked: Tensor, k: int, kept: int, mask: Tensor | None) -> Tensor:
        """Bound the distance of the k-th nearest of each query, by samples of the codes.

        For few queries samples grow as fast as what they bound can be kept, up to one that bounds
        all codes so.
        """
        bounds = self._planes.new_full((len(asked),), self.n_bits)
        is_few = len(asked) < MANY
        growth = max(2, kept // (4 * k)) if is_few else GROWTH_OF_MANY
        enough = self.n_rows // growth if is_few else self.n_rows
        size = FIRST_SAMPLE
        while 4 * size <= self.n_rows:
            if 4 * k <= size:
                step = -(-self.n_rows // UNIT) // (size // UNIT) * UNIT
                span = Span(0, self.n_rows, step)
                found, _ = scan(self._planes, asked, bounds, span, kept, mask)
                seen = found[:, : max(LOOKED_AT, 4 * k)]
                bounds = _lower(bounds, seen.topk(k, dim=1, largest=False).values[:, -1])
                if size >= enough:
                    break
            size = min(size * growth, max(enough, 2 * size))
        return bounds

    def _spans(
        self, asked: Tensor, bounds: Tensor, kept: int, mask: Tensor | None
    ) -> Iterator[tuple[Tensor, bool]]:
        """Scan all codes, at once or, where many are within the bounds, in parts."""
        first, size = 0, self.n_rows
        while first < self.n_rows:
            stop = min(self.n_rows, first + size)
            found, counts = scan(self._planes, asked, bounds, Span(first, stop), kept, mask)
            most = int(counts.max())
            if most > kept:
                size = max(1, size * kept // (2 * most) // UNIT) * UNIT
                continue
            yield found[:, :most], stop == self.n_rows
            first, size = stop, self.n_rows - stop

    def _nothing(self, asked: Tensor) -> Tensor:
        return self._planes.new_empty((len(asked), 0), dtype=torch.int64)

    def _batches(self, queries: Codes, kept: int) -> Iterator[Tensor]:
        at_once = max(1, min(MOST_QUERIES, MOST_KEPT // kept))
        for i in range(0, len(queries), at_once):
            yield to_words(queries[i : i + at_once], self.device)

    def _hits(self, packed: Tensor) -> RowHits:
        found = packed.cpu().numpy()
        places = found & ((1 << PLACE_BITS) - 1)
        rows = places if self._order is None else self._order[places]
        return RowHits(rows, (found >> PLACE_BITS).astype(np.int32))

    def _allowed(self, allowed: Mask | None) -> tuple[Tensor | None, int]:
        """Bring to the device which places may be found, and count them."""
        rows, n_allowed = self._count_allowed(allowed)
        if rows is None:
            return None, n_allowed
        if allowed is not None:
            return self._to_places(rows), n_allowed
        if self._mask is None:
            self._mask = self._to_places(rows)
        return self._mask, n_allowed

    def _to_places(self, mask: Mask) -> Tensor:
        ordered = mask if self._order is None else mask[self._order]
        return torch.from_numpy(ordered.view(np.uint8)).to(self.device)

    def _new_planes(self, n_rows: int) -> Tensor:
        """Take memory for some codes, in whole units; say what would fit where it does not."""
        size = -(-n_rows // UNIT) * UNIT
        words = n_words(self.n_bytes)
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            if 4 * words * size > free:
                needed, fit = in_words(4 * words * size), free // (4 * words)
                raise InputError(
                    f"{n_rows:,} codes of {self.n_bits} bits need {needed} of the GPU's memory "
                    f"and {in_words(free)} are free: {fit:,} codes would fit. "
                    'Divide them, or search on the CPU (device="cpu").'
                )
        return torch.zeros((words, size), dtype=torch.int32, device=self.device)


def _lower(bounds: Tensor, packed: Tensor) -> Tensor:
    """Lower bounds to the distance of a hit; that of `NOTHING` is larger than any."""
    return torch.minimum(bounds, (packed >> PLACE_BITS).to(bounds.dtype))


def check_device(name: str) -> torch.device:
    """Return the device of a name; raise where it is not there."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(f'device must be "cpu" or "cuda". Got {name!r}.') from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device={name!r} was asked for, but torch finds no GPU here. "
            "Leave device out to search on the CPU."
        )
    return device
