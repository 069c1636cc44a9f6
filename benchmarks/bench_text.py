"""Texts to codes: documents a second, beside scikit-learn's TfidfVectorizer.transform alone.

    VDSH_DATA=path/to/data python benchmarks/bench_text.py

20 Newsgroups with its full text, 32 bits, 1,000 hidden nodes, all cores.
"""

import time

from common import alternate, save
from sklearn.feature_extraction.text import TfidfVectorizer

from vdsh.datasets import load
from vdsh.pipeline import TextHasher
from vdsh.text import SMART

ROUNDS = 5


def main() -> None:
    data = load("20newsgroups")
    texts = data.train.texts
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts)
    sklearn = TfidfVectorizer(
        max_features=10_000, stop_words=list(SMART), token_pattern=r"\b\w[\w']+\b"
    )
    sklearn.fit(texts)
    seconds = alternate(
        {
            "texts to codes": lambda: hasher.encode_and_count(texts),
            "texts to counts": lambda: hasher.vectorizer_.transform(texts),
            "sklearn tf-idf alone": lambda: sklearn.transform(texts),
        },
        ROUNDS,
    )
    rates = {name: round(len(texts) / value) for name, value in seconds.items()}
    start = time.perf_counter()
    for text in texts[:1000]:
        hasher.encode_and_count([text])
    rates["texts to codes, one at a time"] = round(1000 / (time.perf_counter() - start))
    ratio = rates["texts to codes"] / rates["sklearn tf-idf alone"]
    for name, rate in rates.items():
        print(f"{name:30} {rate:8,} documents/s")
    print(f"texts to codes / sklearn tf-idf alone: {ratio:.2f}x (wanted: 2)")
    save("text", {"data": data.note, "documents_per_second": rates, "ratio": round(ratio, 2)})


if __name__ == "__main__":
    main()
