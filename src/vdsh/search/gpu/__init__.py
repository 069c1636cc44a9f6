"""Exact Hamming search in the memory of a GPU: `GpuRows` in place of `RowIndex`."""

from vdsh.search.gpu.rows import GpuRows

__all__ = ["GpuRows"]
