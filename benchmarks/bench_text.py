"""Texts to codes: documents a second, beside scikit-learn's TfidfVectorizer.transform alone.

Run: VDSH_DATA=path/to/data python benchmarks/bench_text.py

20 Newsgroups with its full text, 32 bits, the usual network, all cores; then posts and six words of
them one at a time.
"""

from common import alternate, posts, run, timed
from sklearn.feature_extraction.text import TfidfVectorizer

from vdsh.pipeline import TextHasher
from vdsh.text import SMART

ROUNDS = 5


def measure(given):
    data = posts(given.quick)
    texts = data.train.texts
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts)
    stop_words, pattern = list(SMART), r"\b\w[\w']+\b"
    sklearn = TfidfVectorizer(max_features=10_000, stop_words=stop_words, token_pattern=pattern)
    sklearn.fit(texts)
    contenders = {
        "texts to codes": lambda: hasher.encode(texts),
        "texts to counts": lambda: hasher.vectorizer_.transform(texts),
        "sklearn tf-idf alone": lambda: sklearn.transform(texts),
    }
    seconds = alternate(contenders, ROUNDS)
    rates = {name: round(len(texts) / value) for name, value in seconds.items()}
    short = [" ".join(text.split()[10:16]) for text in texts[:1000]]
    for name, some in (("", texts[:1000]), (", six words", short)):
        seconds = timed(lambda some=some: [hasher.encode([text]) for text in some])[1]
        rates[f"texts to codes, one at a time{name}"] = round(1000 / seconds)
    ratio = rates["texts to codes"] / rates["sklearn tf-idf alone"]
    return {"data": data.note, "documents_per_second": rates, "ratio": round(ratio, 2)}


if __name__ == "__main__":
    run(measure)
