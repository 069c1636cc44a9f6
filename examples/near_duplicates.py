"""Find near-duplicates, look at them, delete them.

We plant copies that a person would make: a sentence less, a line added, words in capitals.
"""

import tempfile

from vdsh import Document, TextHasher, open_store
from vdsh.datasets import docstrings

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

# Random hyperplanes: the more words two texts share, the fewer bits differ, and nothing is learned
# but the words' weights. Models that learn bring texts on one subject together, copies or not.
hasher = TextHasher("lsh", n_bits=128, threshold="sign", random_state=0)
hasher.fit([document.text for document in documents])

with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/store", hasher) as store:
    store.upsert(documents + copies)
    for radius in (0, 4, 8):
        groups = list(store.duplicates(radius=radius))
        near = {name for group in groups for name, _ in group.others}
        found = sum(copy.id in near for copy in copies)
        print(
            f"radius {radius}: {found} of {len(copies)} planted copies found, "
            f"{len(near) - found} other documents are as near to one another"
        )
    group = next(group for group in store.duplicates(radius=8) if "copy" in group.others[0][0])
    print(f"\nFor example {group.keep} and {', '.join(name for name, _ in group.others)}")
    deleted = store.delete(name for group in store.duplicates(radius=8) for name, _ in group.others)
    print(f"Deleted {deleted}; {store.count()} documents are left.")

# One machine printed:
# radius 0: 6 of 9 planted copies found, 2 other documents are as near to one another
# radius 4: 7 of 9 planted copies found, 2 other documents are as near to one another
# radius 8: 9 of 9 planted copies found, 4 other documents are as near to one another
#
# For example asyncio.base_events and asyncio.base_events (copy)
# Deleted 13; 656 documents are left.
