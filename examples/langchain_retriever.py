"""A store as a LangChain retriever: ten lines, and it stands in any chain.

Needs `pip install langchain-core`.
"""

import tempfile
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever

from vdsh import TextHasher, open_store
from vdsh.documents import docstrings


class VdshRetriever(BaseRetriever):
    """Asks a `Store`, or a `Client` of a service: both have the same verbs."""

    store: Any
    k: int = 4
    where: dict[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        hits = self.store.search(query, self.k, where=self.where)
        return [Document(hit.text, id=hit.id, metadata=hit.metadata) for hit in hits]


AREAS = ("asyncio", "email", "turtle")
documents = docstrings.collect(modules=AREAS, each=110)
hasher = TextHasher("itq", n_bits=64, random_state=0)
hasher.fit([document.text for document in documents], progress=False)

with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/store", hasher) as store:
    store.upsert(documents)
    retriever = VdshRetriever(store=store, k=3, where={"label": "turtle"})
    for found in retriever.invoke("how do I draw a circle?"):
        print(f"{found.id}: {found.page_content.splitlines()[0]}")

    # In a chain, before the model of your choice: … | prompt | model
    prompt = ChatPromptTemplate.from_template("Answer from these pages:\n{pages}")
    chain = retriever | (lambda pages: {"pages": [page.id for page in pages]}) | prompt
    print(f"\n{chain.invoke('pull the pen up').to_string()}")

# One machine printed:
# turtle.TNavigator.circle: Draw a circle with given radius.
# turtle.TurtleScreenBase._setbgpic: Configure image item as to draw image object
# turtle.RawTurtle.dot: Draw a dot with diameter size, using color.
#
# Human: Answer from these pages:
# ['turtle.TPen.pendown', 'turtle.TPen.penup', 'turtle.RawTurtle._goto']
