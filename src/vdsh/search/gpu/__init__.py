"""Exact Hamming search in the memory of a GPU: `GpuRows` in place of `RowIndex`."""

from vdsh.search.gpu.rows import GpuRows, check_device

__all__ = ["GpuRows", "check_device"]
