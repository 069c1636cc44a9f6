"""Hash documents and search them: 4 bytes a document, no labels.

The documents are docstrings of six corners of the Python world, read from this machine.
"""

from vdsh import HammingIndex, TextHasher
from vdsh.codes import to_hex
from vdsh.documents import docstrings

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")
QUICK = {  # a small model that learns in seconds; leave it away for your own
    "vocabulary_size": 2000,
    "hidden_size": 200,
    "batch_size": 50,
    "epochs": 12,
    "learning_rate": 0.005,
}
QUERIES = (
    "move the pen and draw a circle on the screen",
    "the header lines of a message and its attachments",
    "how well do predicted classes agree with the true ones",
)

documents = docstrings.collect(modules=AREAS, each=110)
texts = [document.text for document in documents]
print(f"{len(texts)} docstrings from {', '.join(AREAS)}.")

hasher = TextHasher("vdsh", n_bits=32, random_state=0, **QUICK)
hasher.fit(texts, progress=False)

codes = hasher.encode(texts)
print(f"The texts have {sum(map(len, texts)):,} characters, their codes {codes.nbytes:,} bytes.")

index = HammingIndex(codes, ids=[document.id for document in documents])
ids, distances = index.search(hasher.encode(QUERIES), k=3)
for query, code, row, column in zip(QUERIES, hasher.encode(QUERIES), ids, distances, strict=True):
    print(f"\n{query}: {to_hex(code[None])[0]}")
    for name, distance in zip(row, column, strict=True):
        print(f"{distance:>4} bits differ  {name}")

# One machine printed:
# 660 docstrings from asyncio, email, numpy.ma, scipy.signal, sklearn.metrics, turtle.
# The texts have 698,987 characters, their codes 2,640 bytes.
#
# move the pen and draw a circle on the screen: c30a1353
#    0 bits differ  turtle.RawTurtle._goto
#    0 bits differ  turtle.TurtleScreen._colorstr
#    0 bits differ  turtle.TurtleScreen.bgpic
