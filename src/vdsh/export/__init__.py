"""Codes and models for other programs: faiss, numpy, Parquet, hex, ONNX.

Bits are in one order everywhere: bit 0 of a code is the highest bit of its first byte, as
`numpy.packbits` has it. Programs that only count differing bits need not know. `codes` writes what
a store holds, `encoder` a model as an ONNX graph, `files` makes files appear whole or not at all.
"""

from vdsh.export.codes import FORMATS, Exported, export_codes
from vdsh.export.encoder import export_encoder

__all__ = ["FORMATS", "Exported", "export_codes", "export_encoder"]
