"""A model's encoder as an ONNX graph: word counts in, scores, bits and codes out."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vdsh import __version__
from vdsh.errors import InputError, missing_package
from vdsh.files import check_new, new_file
from vdsh.model import Model, as_model
from vdsh.model.encoders import Hyperplanes, Linear, Network

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

OPSET = 17
FORMAT = 9  # of the file, which older runtimes read too
SMALLEST = np.float32(1e-30)  # instead of the length 0 of an empty document


def export_encoder(
    hasher: "TextHasher | Model", path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write a fitted model as an ONNX file.

    The input `counts` is float32 of shape (n_docs, n_terms), or the vectors of a model of vectors.
    Weighting and scaling are in the graph. Outputs are `scores`, `bits` (both of shape (n_docs,
    n_bits)) and `codes` of shape (n_docs, n_bits // 8).
    The words of the columns are in the file's metadata, one a line.

    Parameters
    ----------
    hasher : TextHasher or Model
        Of one of the models linear, vdsh, vdsh-s, vdsh-sp, lsh, itq, sth, shttm.
    path : path
    force : bool, default=False
        Replace a file that is there.
    """
    model = as_model(hasher)
    graph = _Graph(model).model()
    facts = {
        "model": model.name,
        "weighting": model.weighting,
        "fingerprint": model.fingerprint,
        "bit_order": "big: bit 0 is the highest bit of the first byte",
        "vocabulary": "\n".join(model.words),
    }
    for name, value in facts.items():
        graph.metadata_props.add(key=name, value=value)
    check_new(path, force=force)
    with new_file(Path(path)) as draft:
        draft.write_bytes(graph.SerializeToString())


class _Graph:
    """Collects nodes and constants; each method adds a step and returns its result's name."""

    def __init__(self, model: Model) -> None:
        try:
            import onnx
        except ImportError:
            raise missing_package("An ONNX file", "onnx", "export") from None
        self._onnx = onnx
        self._model = model
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self) -> Any:
        """Put the graph together."""
        n_terms, n_bits = self._model.n_inputs, self._model.n_bits
        scores = self._scores(self._weighted("counts"))
        self._add("Identity", scores, to="scores")
        above = self._add("Greater", "scores", self._constant(self._model.thresholds))
        types = self._onnx.TensorProto
        self._add("Cast", above, to="bits", attributes={"to": types.UINT8})
        self._pack("bits")
        value = self._onnx.helper.make_tensor_value_info
        outputs = [
            value("scores", types.FLOAT, ["n_docs", n_bits]),
            value("bits", types.UINT8, ["n_docs", n_bits]),
            value("codes", types.UINT8, ["n_docs", n_bits // 8]),
        ]
        inputs = [value("counts", types.FLOAT, ["n_docs", n_terms])]
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "vdsh", inputs, outputs, self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            producer_name="vdsh",
            producer_version=__version__,
            ir_version=FORMAT,
        )
        self._onnx.checker.check_model(model)
        return model

    def _weighted(self, counts: str) -> str:
        """Weigh counts and scale each row to unit length, as `vdsh.text.counts` does."""
        weighting = self._model.weighting
        if weighting == "given":
            return counts
        if weighting == "tfidf":
            counts = self._add("Mul", counts, self._constant(self._model.idf))
        elif weighting == "binary":
            counts = self._add("Sign", counts)
        square = self._add("Mul", counts, counts)
        total = self._add("ReduceSum", square, self._constant(np.array([1], np.int64)))
        length = self._add("Max", self._add("Sqrt", total), self._constant(SMALLEST))
        return self._add("Div", counts, length)

    def _scores(self, inputs: str) -> str:
        encoder = self._model.encoder
        if isinstance(encoder, Network):
            hidden = self._add("Relu", self._linear(inputs, encoder.W1, encoder.b1))
            hidden = self._add("Relu", self._linear(hidden, encoder.W2, encoder.b2))
            return self._linear(hidden, encoder.W3, encoder.b3)
        if isinstance(encoder, Hyperplanes):
            return self._add("MatMul", inputs, self._constant(encoder.hyperplanes))
        if isinstance(encoder, Linear):
            return self._linear(inputs, encoder.W, encoder.b)
        raise InputError(
            f"The model '{self._model.name}' cannot be written as ONNX. "
            "The models linear, vdsh, vdsh-s, vdsh-sp, lsh, itq, sth and shttm can."
        )

    def _linear(self, inputs: str, W: Any, b: Any) -> str:
        product = self._add("MatMul", inputs, self._constant(W))
        return self._add("Add", product, self._constant(b))

    def _pack(self, bits: str) -> None:
        """Pack bits into bytes, the first bit highest."""
        types = self._onnx.TensorProto
        shape = np.array([0, self._model.n_bits // 8, 8], np.int64)
        parts = self._add("Reshape", bits, self._constant(shape))
        numbers = self._add("Cast", parts, attributes={"to": types.INT32})
        places = self._constant(2 ** np.arange(7, -1, -1, dtype=np.int32))
        weighted = self._add("Mul", numbers, places)
        axis = self._constant(np.array([2], np.int64))
        total = self._add("ReduceSum", weighted, axis, attributes={"keepdims": 0})
        self._add("Cast", total, to="codes", attributes={"to": types.UINT8})

    def _constant(self, value: Any) -> str:
        name = f"constant{len(self._constants)}"
        array = np.ascontiguousarray(value)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _add(
        self, kind: str, *inputs: str, to: str = "", attributes: dict[str, Any] | None = None
    ) -> str:
        result = to or f"step{len(self._nodes)}"
        node = self._onnx.helper.make_node(kind, inputs, [result], **(attributes or {}))
        self._nodes.append(node)
        return result
