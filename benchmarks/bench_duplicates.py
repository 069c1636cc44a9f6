"""Near-duplicates in 20 Newsgroups with planted edits: against exact Jaccard, beside datasketch.

Run: python benchmarks/bench_duplicates.py [--folder DIR]

All 18,846 posts as they are, and 2,000 copies of some of them with the edits that people make. The
reference compares all pairs that can be similar (prefix filtering loses none) and groups by leaders
in the order of ids. With --folder models and stores are kept, and a second run uses them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from common import alternate, resident_mb, save
from datasketch import MinHash, MinHashLSH
from scipy.sparse import csr_array, triu

from vdsh import Document, TextHasher, read_documents
from vdsh.store import copy_store, open_store, shingles
from vdsh.store.shingles import jaccard, shingle

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from servers import PostgresServer

SIMILARITY, COPIES, ROUNDS, EPOCHS, BITS = 0.8, 2000, 3, 4, 32
MODELS = ("vdsh", "vdsh-s")
RADII = (0, 1, 2, 4, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where models and stores are kept")
    parser.add_argument("--memory", nargs=2, help="used inside: a contender and a store")
    given = parser.parse_args()
    if given.memory:
        print(peak(*given.memory))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        result = run(folder)
    about = {"similarity": SIMILARITY, "copies": COPIES, "rounds": ROUNDS, "epochs": EPOCHS}
    save("duplicates", {**about, "bits": BITS, "load": os.getloadavg()[0], **result})


def run(folder):
    documents = corpus()
    texts = {document.id: document.text for document in documents}
    pairs = exact_pairs(texts)
    expected = leaders(sorted(texts), pairs)
    print(f"{len(pairs)} similar pairs, {len(expected)} of them with a leader", flush=True)
    result = {"documents": len(documents), "similar_pairs": len(pairs), "shingles": choice(texts)}
    places = {name: fill(folder, name, documents) for name in MODELS}
    contenders = {f"store, {name}": lambda name=name: ours(places[name]) for name in MODELS}
    contenders["datasketch"] = lambda: datasketch(places["vdsh"])
    result["quality"] = {
        name: judge(work(), expected, pairs, texts) for name, work in contenders.items()
    }
    print(result["quality"], flush=True)
    result["codes"] = {name: by_code(places[name], pairs) for name in MODELS}
    print(result["codes"], flush=True)
    result["seconds"] = alternate(contenders, ROUNDS)
    print(result["seconds"], flush=True)
    result["engines"] = engines(places["vdsh-s"], folder, expected, pairs, texts)
    result["megabytes"] = {
        f"store, {name}": memory("ours", place) for name, place in places.items()
    }
    result["megabytes"]["datasketch"] = memory("datasketch", places["vdsh"])
    return result


def posts():
    file = Path(os.environ["VDSH_DATA"], "20newsgroups", "documents.jsonl.gz")
    return list(read_documents(file))


def corpus():
    originals, rng = posts(), np.random.default_rng(0)
    long = [i for i, post in enumerate(originals) if len(post.text.split()) > 30]
    copies = []
    for n, i in enumerate(rng.choice(long, COPIES, replace=False)):
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
    "line less": lambda text, rng: "\n".join(without_one(text.split("\n"), rng)),
    "moved": lambda text, rng: text[len(text) // 2 :] + "\n" + text[: len(text) // 2],
    "2 % of words": words_changed(0.02),
    "5 % of words": words_changed(0.05),
    "15 % of words": words_changed(0.15),
}


def without_one(lines, rng):
    cut = int(rng.integers(len(lines)))
    return lines[:cut] + lines[cut + 1 :]


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


def choice(texts):
    """Count, for shingles of one to four words, which edits are found and how many other pairs."""
    found, chosen = {}, shingles.LENGTH
    originals = {id: text for id, text in texts.items() if " " not in id}
    for shingles.LENGTH in (1, 2, 3, 4):
        near = {kind: [] for kind in EDITS}
        for id in texts.keys() - originals.keys():
            original, _, kind = id.partition(" ")
            value = jaccard(*shingle([texts[original], texts[id]]))
            near[kind].append(value >= SIMILARITY)
        shares = {kind: sum(hits) / len(hits) for kind, hits in near.items()}
        n_pairs = len(exact_pairs(originals))
        found[shingles.LENGTH] = {"found": shares, "pairs_of_posts": n_pairs}
        print(shingles.LENGTH, found[shingles.LENGTH], flush=True)
    shingles.LENGTH = chosen
    return found


def fill(folder, name, documents):
    """Make a store with a model that was trained for a short time on the posts of train."""
    model, place = folder / name, folder / f"store-{name}"
    if not model.exists():
        train = [post for post in posts() if post.metadata["split"] == "train"]
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


def judge(found, expected, pairs, texts):
    """Compare pairs of a leader and another with the reference."""
    right = sum(pair in pairs for pair in found)
    planted = {id for id in texts if " " in id and (id.partition(" ")[0], id) in pairs}
    in_groups = {id for pair in found for id in pair}
    return {
        "others": len(found),
        "precision": right / len(found),
        "recall": len(found & expected) / len(expected),
        "planted_found": len(planted & in_groups) / len(planted),
    }


def by_code(place, pairs):
    """Say what candidates by code would be: how many pairs, and which share of the similar ones."""
    ids, parts = [], []
    with open_store(place) as store:
        for some, codes in store.codes():
            ids += some
            parts.append(codes)
    codes = np.concatenate(parts)
    rows = {id: row for row, id in enumerate(ids)}
    ends = np.array([(rows[one], rows[other]) for one, other in pairs])
    similar = np.unpackbits(codes[ends[:, 0]] ^ codes[ends[:, 1]], axis=1).sum(axis=1)
    distinct, sizes = np.unique(codes, axis=0, return_counts=True)
    n_at = np.zeros(BITS + 1, np.int64)
    for code, size in zip(distinct, sizes, strict=True):
        distances = np.unpackbits(distinct ^ code, axis=1).sum(axis=1)
        n_at += np.bincount(distances, sizes * size, BITS + 1).astype(np.int64)
    n_at[0] -= len(codes)
    radii = {
        radius: {
            "recall": float(np.mean(similar <= radius)),
            "pairs": int(n_at[: radius + 1].sum() // 2),
        }
        for radius in RADII
    }
    return {"codes": len(distinct), "most_on_one": int(sizes.max()), "radius": radii}


def engines(source, folder, expected, pairs, texts):
    """Copy the store to each engine and ask there."""
    found = {}
    server = PostgresServer()
    try:
        places = {"PostgreSQL": server.url("postgres"), "Milvus Lite": f"milvus-lite:{folder}/m.db"}
        for name, place in places.items():
            with open_store(source) as store, open_store(place, store.hasher) as target:
                copy_store(store, target)
            ours(place)
            start = time.perf_counter()
            answer = ours(place)
            seconds = time.perf_counter() - start
            found[name] = judge(answer, expected, pairs, texts) | {"seconds": seconds}
            print(name, found[name], flush=True)
    finally:
        server.remove()
    return found


def memory(contender, place):
    """Measure in a process of its own what finding duplicates adds to it, in megabytes."""
    command = [sys.executable, __file__, "--memory", contender, place]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak(contender, place):
    with tempfile.TemporaryDirectory() as folder:  # compiles and loads what is needed
        with open_store(f"{folder}/s", Path(place, "model")) as store:
            store.upsert([Document(f"{i}", "a text of no importance") for i in range(300)])
        {"ours": ours, "datasketch": datasketch}[contender](f"{folder}/s")
    Path("/proc/self/clear_refs").write_text("5")  # begin to look for the peak anew
    before = resident_mb()
    {"ours": ours, "datasketch": datasketch}[contender](place)
    # Not ru_maxrss: on Linux a child begins with its parent's.
    status = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    return int(status.split()[0]) * 1.024 / 1000 - before


if __name__ == "__main__":
    main()
