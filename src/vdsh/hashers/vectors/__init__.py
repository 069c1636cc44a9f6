"""Vectors as documents: what a user sees (`vector_hasher`), the model, its training."""

from vdsh.hashers.vectors.vector_hasher import VectorHasher

__all__ = ["VectorHasher"]
