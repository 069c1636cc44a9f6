"""Which method suits your documents? Measure on held-out ones, and ask whether it was luck.

Put your own in place of the docstrings: `documents = list(read_documents("mine.jsonl"))`.
"""

from vdsh import TextHasher
from vdsh.datasets import random_split
from vdsh.documents import docstrings
from vdsh.evaluation import compare, yardsticks
from vdsh.paper.protocol import evaluate_codes

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")
QUICK = {  # a small model that learns in seconds; leave it away for your own
    "vocabulary_size": 2000,
    "hidden_size": 200,
    "batch_size": 50,
    "epochs": 12,
    "learning_rate": 0.005,
}
METHODS = {"lsh": {}, "sph": {}, "itq": {}, "vdsh": QUICK, "vdsh-s": QUICK}

documents = docstrings.collect(modules=AREAS, each=110)
data = random_split("mine", documents, 0, "six areas")

precisions = {}
for name, settings in METHODS.items():
    hasher = TextHasher(name, n_bits=16, random_state=0, **settings)
    hasher.fit(data.train.texts, data.train.labels, progress=False)
    codes, queries = hasher.encode(data.train.texts), hasher.encode(data.test.texts)
    found = evaluate_codes(queries, data.test.labels, codes, data.train.labels, k=50)
    precisions[name] = found.values["precision@50"]  # a value for each query

print(f"Precision at 50, 16 bits, {len(data.test.ids)} queries:")
counted = [
    (hasher.vectorizer_.transform(part.texts), part.labels) for part in (data.test, data.train)
]
for name, value in yardsticks(*counted, k=50).items():
    print(f"  {name:<20} {value:.3f}")
for name, values in sorted(precisions.items(), key=lambda item: item[1].mean()):
    print(f"  {name:<20} {values.mean():.3f}")

for better, other in (("vdsh-s", "vdsh"), ("vdsh", "itq")):
    result = compare(precisions[better], precisions[other])
    verdict = "is real" if result.p_value < 0.01 else "may be luck"
    print(
        f"{better} - {other}: {result.difference:+.3f} ({result.low:+.3f} to {result.high:+.3f}), "
        f"p = {result.p_value:.2g}: {verdict}"
    )

# One machine printed:
# Precision at 50, 16 bits, 66 queries:
#   random               0.166
#   exact tf-idf cosine  0.780
#   lsh                  0.280
#   sph                  0.523
#   itq                  0.795
#   vdsh                 0.891
#   vdsh-s               0.985
# vdsh-s - vdsh: +0.094 (+0.045 to +0.153), p = 0.001: is real
