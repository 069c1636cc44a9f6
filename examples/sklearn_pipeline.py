"""Every hasher is a scikit-learn transformer: pipelines, cross-validation, grid search.

Bits become features: a nearest-neighbour classifier on them names the area of a docstring.
"""

from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from vdsh.documents import docstrings
from vdsh.hashers import ITQ, VDSH
from vdsh.text import BagOfWords

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")

documents = docstrings.collect(modules=AREAS, each=110)
texts = [document.text for document in documents]
areas = [document.labels[0] for document in documents]

nearest = KNeighborsClassifier(5, metric="hamming")
hasher = VDSH(32, epochs=12, hidden_size=200, batch_size=50, learning_rate=0.005, random_state=0)
model = make_pipeline(BagOfWords(vocabulary_size=2000), hasher, nearest)
scores = cross_val_score(model, texts, areas, cv=3)
print(f"VDSH, 32 bits: the right area for {scores.mean():.0%} of unseen docstrings.")

model = make_pipeline(BagOfWords(), ITQ(random_state=0), nearest)
grid = GridSearchCV(model, {"itq__n_bits": [8, 16, 32]}, cv=3).fit(texts, areas)
for bits, score in zip([8, 16, 32], grid.cv_results_["mean_test_score"], strict=True):
    print(f"ITQ, {bits:>2} bits: {score:.0%}")
print("'the pen is up and the turtle turns left' is about", end=" ")
print(grid.predict(["the pen is up and the turtle turns left"])[0])

# One machine printed:
# VDSH, 32 bits: the right area for 92% of unseen docstrings.
# ITQ,  8 bits: 86%
# ITQ, 16 bits: 92%
# ITQ, 32 bits: 91%
# 'the pen is up and the turtle turns left' is about turtle
