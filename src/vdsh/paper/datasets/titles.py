"""Titles of biomedical papers (J. Xu et al., 2017): 20,000 short texts in 20 classes."""

from pathlib import Path

from vdsh.paper.datasets import formats
from vdsh.paper.datasets.base import Corpus, Source, as_corpus
from vdsh.paper.datasets.download import File

# The publisher's archive has no address that we could verify, so the file in our layout is fetched
# from a mirror, or put into the folder by hand.
_DOCUMENTS = File(
    formats.DOCUMENTS,
    (),
    "e177271a0939feef37b469b551224e9e30b206855d401a82ac0fc85b8816da6f",
    "629 kB",
)


def read(folder: Path) -> Corpus:
    """Read the titles."""
    titles = formats.read_stories(folder)
    labels = {label for title in titles for label in title.labels or ()}
    note = f"titles of biomedical papers, {len(labels)} classes, {len(titles):,} titles"
    return as_corpus(titles, note)


def parse(folder: Path) -> None:
    """Do nothing: the file is in our layout as it is."""


SOURCE = Source(
    name="titles",
    title="Titles of biomedical papers (PubMed, BioASQ), 20 MeSH groups",
    home="https://github.com/jacoxu/STC2",
    licence="none stated; published for research",
    citation="J. Xu et al., Self-Taught Convolutional Neural Networks for Short Text Clustering, "
    "Neural Networks 2017",
    used="lower-cased titles without punctuation, 13 words in the mean; classes have numbers, no "
    "names",
    documents=20_000,
    labels=20,
    read=read,
    folder="titles",
    layout=(formats.DOCUMENTS,),
    files=(_DOCUMENTS,),
    parse=parse,
)
