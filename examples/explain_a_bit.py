"""Look inside a code: the words behind a bit, the bits behind a text, how sure they are."""

from vdsh import TextHasher
from vdsh.documents import docstrings
from vdsh.explain import explain_bits, explain_text, sample

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")
QUICK = {  # a small model that learns in seconds; leave it away for your own
    "vocabulary_size": 2000,
    "hidden_size": 200,
    "batch_size": 50,
    "epochs": 12,
    "learning_rate": 0.005,
}
TEXT = "draw a filled circle, then move the turtle forward and lift the pen"

documents = docstrings.collect(modules=AREAS, each=110)
hasher = TextHasher("vdsh-s", n_bits=16, random_state=0, **QUICK)
hasher.fit([d.text for d in documents], [d.labels for d in documents], progress=False)

print("Words that push the first bits to 1, and to 0:")
for bit in explain_bits(hasher, n_words=5)[:4]:
    ones, zeros = (" ".join(word.word for word in side) for side in (bit.ones, bit.zeros))
    print(f"{bit.bit:>4}  1: {ones}\n      0: {zeros}")

found = explain_text(hasher, TEXT, n_words=3)
print(f"\n'{TEXT}'\nis {found.code}; a new draw would change {found.expected_wrong:.1f} bits.")
surest = max(found.bits, key=lambda bit: abs(bit.margin))
words = ", ".join(word.word for word in surest.words if word.weight > 0)
print(f"Its surest bit is {surest.bit}: a {surest.value}, because of {words}.")

print("\nWhat the model would write where it places a text:")
for area, text in (("turtle", TEXT), ("email", "parse the header of an email message")):
    (draw,) = sample(hasher, 1, text=text, n_words=8, random_state=0)
    print(f"  {area}: {' '.join(word.word for word in draw.distinctive)}")

# One machine printed:
# Words that push the first bits to 1, and to 0:
#    0  1: masked 999999 ma fill result
#       0: scipy float int inputs length
#   ...
# 'draw a filled circle, then move the turtle forward and lift the pen'
# is 77f7; a new draw would change 2.1 bits.
# Its surest bit is 14: a 1, because of forward, circle.
# What the model would write where it places a text:
#   turtle: instance argument turtle named number set optional return
#   email: header return set string object message returned method
