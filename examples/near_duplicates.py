"""Find near-duplicates, look at them, delete them.

We plant copies that a person would make: a sentence less, a line added, words in capitals.
"""

import tempfile

from vdsh import Document, TextHasher, open_store
from vdsh.documents import docstrings

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")

documents = docstrings.collect(modules=AREAS, each=110)
long = [document for document in documents if len(document.text) > 500][:9]
edits = (
    lambda text: text.rpartition(".")[0],  # without what follows the last full stop
    lambda text: text + "\nCopied from the manual.",
    lambda text: text.upper(),
)
copies = [
    Document(f"{document.id} (copy)", edits[i % 3](document.text), document.labels)
    for i, document in enumerate(long)
]

# Any model will do: whether two texts are nearly the same is decided by the texts themselves.
hasher = TextHasher("lsh", n_bits=32, random_state=0)
hasher.fit([document.text for document in documents])

with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/store", hasher) as store:
    store.upsert(documents + copies)
    for similarity in (1, 0.9, 0.8):
        groups = list(store.duplicates(similarity=similarity))
        near = {name for group in groups for name, _, _ in group.others}
        found = sum(copy.id in near for copy in copies)
        print(
            f"similarity {similarity}: {found} of {len(copies)} planted copies found, "
            f"{len(near) - found} other documents are as near to one another"
        )
    group = next(group for group in groups if "copy" in group.others[0][0])
    name, distance, similarity = group.others[0]
    print(f"\nFor example {group.keep} and {name}: {similarity:.2f}, {distance} bits differ")
    deleted = store.delete(name for group in groups for name, _, _ in group.others)
    print(f"Deleted {deleted}; {store.count()} documents are left.")

# One machine printed:
# similarity 1: 6 of 9 planted copies found, 0 other documents are as near to one another
# similarity 0.9: 9 of 9 planted copies found, 1 other documents are as near to one another
# similarity 0.8: 9 of 9 planted copies found, 10 other documents are as near to one another
#
# For example asyncio.base_events and asyncio.base_events (copy): 1.00, 0 bits differ
# Deleted 19; 650 documents are left.
