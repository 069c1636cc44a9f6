"""What is used of pymilvus, imported in one place that says how to install it."""

import logging

from vdsh.errors import needing

with needing("A store in Milvus", "pymilvus", "milvus"):
    from grpc import RpcError
    from pymilvus import DataType, Function, FunctionType, MilvusClient
    from pymilvus.exceptions import MilvusException
    from pymilvus.milvus_client.index import IndexParams

__all__ = [
    "DataType",
    "Function",
    "FunctionType",
    "IndexParams",
    "MilvusClient",
    "MilvusException",
    "RpcError",
]

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it prints what it also raises
