"""Near-duplicates in 20 Newsgroups with planted edits: against exact Jaccard, beside datasketch.

Run: VDSH_DATA=path/to/data python benchmarks/bench_duplicates.py [--folder DIR]

All 18,846 posts as they are, and 2,000 copies of some of them with the edits that people make. The
reference compares all pairs that can be similar (prefix filtering loses none) and groups by leaders
in the order of ids. With --folder models and stores are kept, and a second run uses them.
"""

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from common import POSTS, alternate, run
from datasketch import MinHash, MinHashLSH
from scipy.sparse import csr_array, triu

from vdsh import Document, TextHasher, read_documents
from vdsh.store import open_store, shingles
from vdsh.store.shingles import jaccard, shingle

SIMILARITY, COPIES, ROUNDS, EPOCHS, BITS = 0.8, 2000, 3, 4, 32
MODELS = ("vdsh", "vdsh-s")


def measure(given):
    with tempfile.TemporaryDirectory() as temporary:
        folder, originals = given.folder or Path(temporary), posts(given.quick)
        documents = with_copies(originals)
        texts = {document.id: document.text for document in documents}
        pairs = exact_pairs(texts)
        expected = leaders(sorted(texts), pairs)
        places = {name: fill(folder, name, originals, documents) for name in MODELS}
        work = {f"store, {name}": lambda name=name: ours(places[name]) for name in MODELS}
        work["datasketch"] = lambda: datasketch(places["vdsh"])
        return {
            "similarity": SIMILARITY,
            "copies": len(documents) - len(originals),
            "documents": len(documents),
            "similar_pairs": len(pairs),
            "quality": {name: judge(find(), expected, pairs) for name, find in work.items()},
            "seconds": alternate(work, ROUNDS),
        }


def posts(quick):
    file = Path(os.environ["VDSH_DATA"], "20newsgroups", "documents.jsonl.gz")
    return list(read_documents(file))[: POSTS if quick else None]


def with_copies(originals):
    rng = np.random.default_rng(0)
    long = [i for i, post in enumerate(originals) if len(post.text.split()) > 30]
    copies = []
    for n, i in enumerate(rng.choice(long, min(COPIES, len(long) // 2), replace=False)):
        kind = list(EDITS)[n % len(EDITS)]
        copies.append(Document(f"{originals[i].id} {kind}", EDITS[kind](originals[i].text, rng)))
    return originals + copies


def words_changed(share):
    def change(text, rng):
        words = text.split(" ")
        gone = rng.random(len(words)) < share
        return " ".join(["changed" if g else word for word, g in zip(words, gone, strict=True)])

    return change


EDITS = {
    "capitals": lambda text, rng: text.upper(),
    "spaces": lambda text, rng: text.replace("\n", "\n\n> "),
    "signature": lambda text, rng: text + "\n-- \nSent by a friend of mine, who says hello",
    "line less": lambda text, rng: "\n".join(
        np.delete(text.split("\n"), rng.integers(text.count("\n") + 1))
    ),
    "moved": lambda text, rng: text[len(text) // 2 :] + "\n" + text[: len(text) // 2],
    "2 % of words": words_changed(0.02),
    "5 % of words": words_changed(0.05),
    "15 % of words": words_changed(0.15),
}


def exact_pairs(texts):
    """Find all pairs at least so similar.

    Two sets that share so much share one of the rarest of either: R. Bayardo, Y. Ma and R. Srikant,
    "Scaling up all pairs similarity search", WWW 2007.
    """
    ids = sorted(texts)
    sets = shingle([texts[id] for id in ids])
    _, numbers, counts = np.unique(np.concatenate(sets), return_inverse=True, return_counts=True)
    ends = np.cumsum([0, *map(len, sets)])
    columns, sizes = [], [0]
    for start, end in pairwise(ends):
        mine = numbers[start:end]
        rarest = mine[np.argsort(counts[mine], kind="stable")]
        columns.append(rarest[: len(mine) - int(np.ceil(SIMILARITY * len(mine))) + 1])
        sizes.append(len(columns[-1]))
    rows = np.concatenate(columns)
    shape = (len(ids), len(counts))
    prefixes = csr_array((np.ones(len(rows), np.int32), rows, np.cumsum(sizes)), shape=shape)
    sharing = triu(prefixes @ prefixes.T, 1).tocoo()
    found = {}
    for i, j in zip(sharing.row.tolist(), sharing.col.tolist(), strict=True):
        if (value := jaccard(sets[i], sets[j])) >= SIMILARITY:
            found[ids[i], ids[j]] = value
    return found


def leaders(ids, pairs):
    """Group by leaders in the order of ids; return the pairs of a leader and another."""
    after = {}
    for one, other in pairs:
        after.setdefault(one, []).append(other)
    taken, groups = set(), set()
    for id in ids:
        if id not in taken:
            free = set(after.get(id, ())) - taken
            taken |= free
            groups |= {(id, other) for other in free}
    return groups


def fill(folder, name, originals, documents):
    """Make a store with a model that was trained for a short time on the posts of train."""
    model, place = folder / name, folder / f"store-{name}"
    if not model.exists():
        train = [post for post in originals if post.metadata["split"] == "train"]
        labels = [d.labels for d in train] if name == "vdsh-s" else None
        hasher = TextHasher(name, n_bits=BITS, epochs=EPOCHS, random_state=0, device="cpu")
        hasher.fit([d.text for d in train], labels).save(model)
    with open_store(place, model) as store:
        if store.count() != len(documents):
            store.upsert(documents)
    return str(place)


def ours(place):
    with open_store(place) as store:
        groups = store.duplicates(similarity=SIMILARITY)
        return {(group.keep, id) for group in groups for id, _, _ in group.others}


def datasketch(place):
    """Do the same with datasketch: our words, its sketches and its index, leaders by id."""
    index = MinHashLSH(threshold=SIMILARITY, num_perm=shingles.SIZE)
    sketches = {}
    with open_store(place) as store:
        for page in store.documents():
            for document in page:
                one = MinHash(num_perm=shingles.SIZE, hashfunc=lambda number: number & 0xFFFFFFFF)
                one.update_batch(shingle([document.text])[0].tolist())
                index.insert(document.id, one)
                sketches[document.id] = one
    pairs = {
        (id, other): True
        for id, one in sketches.items()
        for other in index.query(one)
        if other > id
    }
    return leaders(list(sketches), pairs)


def judge(found, expected, pairs):
    """Compare pairs of a leader and another with the reference."""
    right = sum(pair in pairs for pair in found)
    recall = len(found & expected) / len(expected)
    return {"others": len(found), "precision": right / len(found), "recall": recall}


if __name__ == "__main__":
    run(measure, folder=Path)
