"""A store as a LlamaIndex retriever: ten lines, and any query engine can use it.

Needs `pip install llama-index-core`.
"""

import tempfile

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from vdsh import Client, TextHasher, open_store
from vdsh.documents import docstrings
from vdsh.store import Hit, Store


class VdshRetriever(BaseRetriever):
    """Asks a `Store`, or a `Client` of a service: both have the same verbs."""

    def __init__(self, store: Store | Client, k: int = 4) -> None:
        self._store, self._k = store, k
        super().__init__()

    def _retrieve(self, query: QueryBundle) -> list[NodeWithScore]:
        hits = self._store.search(query.query_str, self._k)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits]


def _node(hit: Hit) -> TextNode:
    return TextNode(id_=hit.id, text=hit.text, metadata=hit.metadata)


AREAS = ("asyncio", "email", "turtle")
documents = docstrings.collect(modules=AREAS, each=110)
hasher = TextHasher("itq", n_bits=64, random_state=0)
hasher.fit([document.text for document in documents], progress=False)

with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/store", hasher) as store:
    store.upsert(documents)
    retriever = VdshRetriever(store, k=3)
    for query in ("how do I draw a circle?", "headers of a message"):
        print(f"{query}")
        for found in retriever.retrieve(query):
            print(f"  {found.score:.2f}  {found.node.node_id}")

# One machine printed:
# how do I draw a circle?
#   0.76  turtle.TNavigator.circle
#   0.29  turtle.TurtleScreenBase._setbgpic
#   0.25  turtle.RawTurtle.dot
# headers of a message
#   0.79  email.message.Message
#   0.78  email._policybase.Policy.header_max_count
#   0.55  email.parser.Parser.parsestr
