"""Languages of the word index: stems, stop words, and which language documents are in.

Stems are those of Snowball (M. Porter, "Snowball: a language for stemming algorithms", 2001), from
the library PyStemmer. The lists of stop words are short: words that carry no matter of their own.
They also tell which language a text is in.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from threading import Lock

import Stemmer

from vdsh.errors import InputError
from vdsh.text.tokenizer import tokenize

NONE = "none"  # no stems and no stop words
_LOOKED_AT, _PREFIX = 500, 2000  # texts, and characters of each, that tell the language
_EVIDENCE = 0.05  # share of stop words that a text has at least in its own language
_KIN = 0.6  # of the stop words of its best language, where a text may be in another as well
_MOST = 0.7  # share of the texts that one language is for
_MOST_KNOWN = 50_000  # words whose stems are remembered
_LATIN = 0.97  # share of plain Latin letters, above which texts of no language get English stems

STOP_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "english": "a an and are as at be been but by can could did do does for from had has have "
        "he her his how i if in into is it its me my no not of on or our she so than that the "
        "their them then there these they this to was we were what when where which who will "
        "with would you your",
        "german": "aber als am an auch auf aus bei bin bis das dass dem den der des die du durch "
        "ein eine einem einen einer eines er es für hat hatte ich ihr im in ist kann mit nach "
        "nicht noch nur oder sich sie sind so über um und uns von vor war was wenn werden wie wir "
        "wird zu zum zur",
        "french": "à au aux avec ce ces cette dans de des du elle en est et être il ils j je l la "
        "le les leur lui mais me ne nous on ou où par pas pour qu que qui sa se ses son sont sur "
        "un une vous y",
        "spanish": "a al como con de del el en entre era es esta este fue ha hay la las le lo los "
        "más me muy no nos o para pero por que se sin sobre son su sus también un una y ya yo",
        "italian": "a ai al alla anche che ci come con da dal dei del della delle di e è gli ha i "
        "il in io l la le lo ma mi ne nel nella non o per più quando questo se si sono su suo sua "
        "tra un una",
        "portuguese": "a ao aos as com como da das de do dos e é ela ele em entre era foi há isso "
        "já mais mas me muito na não nas no nos o os ou para pela pelo por que são se seu sua "
        "também um uma",
        "dutch": "aan al als bij dan dat de der deze die dit door een en er haar had heb heeft het "
        "hij hoe ik in is je kan maar me met naar niet nog of om ook op over te tot uit van voor "
        "was wat we wel werd wordt ze zij zijn zo zou",
        "swedish": "alla att av de dem den denna det detta din du där efter eller en ett för från "
        "ha hade han har hon i inte jag kan man med men mot nu när och om på sig sin ska som så "
        "till under upp ut var vi vid är",
        "danish": "af alle at blev da de dem den denne der det dig din du efter eller en end er et "
        "for fra ham han har havde hun i ikke jeg kan man med meget men mig ned nu når og også om "
        "op på sig sin som så til ud under var vi vil",
        "norwegian": "alle at av ble blir da de dem den denne der det du eller en er et etter for "
        "fra han har hadde hun i ikke jeg kan man med men mot nå når og også om opp på seg sin "
        "skal som så til under ut var ved vi vil",
        "finnish": "ei eivät en että hän he ja jo jos joka jotka kanssa koska kuin kun me mikä "
        "minä mitä mutta myös ne niin nyt oli olivat olla on ovat se sekä sen siitä tai tämä "
        "tämän vain voi",
        "russian": "а без был была были было быть в во вот все всё вы да для до его ее её если "
        "есть еще ещё же за и из или им их к как ко которые который ли между меня мне мы на над "
        "не него нее но о об он она они от по под при с со так также то только у уже что чтобы "
        "эта эти это я",
        "polish": "a ale by być co dla do go i ich jak jako jest jej jego już która które który "
        "lub ma mi na nie niż o od oraz po pod przed przez przy się są ta tak tego tej ten to tym "
        "tylko w we z za ze że",
        "turkish": "ama ancak bir bu çok da daha de değil diye en gibi hem her için ile ise kadar "
        "ki mi mu ne o olan olarak sonra şu var ve veya ya yok",
        "greek": "από για δε δεν είναι η θα και κατά με μετά μια να ο οι όπως που προς σε σαν στη "
        "στην στο στον στους τα της τη την τις το τον του τους των ως",
        "arabic": "أن إلى إن التي الذي أو بعد بين ثم حتى ذلك على عن في كان كانت كل لا لم ما مع من "
        "هذا هذه هو هي و قد",
        "hindi": "इस एक और का की के को कर जो ने नहीं पर भी में यह वह से हैं है हो था थी थे लिए",
    }.items()
}
_FOLDED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "ς": "σ"}
)


class Language:
    """How words of a language become terms of the word index.

    `name`: one of `languages()`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        stop_words = STOP_WORDS.get(name, frozenset())
        self.stop_words = stop_words | {fold(word) for word in stop_words}
        self._known = _Stems(name)

    def stems(self, words: Iterable[str]) -> list[str]:
        """Give the stem of each word, without accents.

        >>> language("english").stems(["optimizers", "Caf\u00e9".lower()])
        ['optim', 'cafe']
        """
        if len(self._known) > _MOST_KNOWN:
            self._known = _Stems(self.name)
        return list(map(self._known.__getitem__, words))


class _Stems(dict[str, str]):
    """Stems by word, remembered: most words that a search meets were met before."""

    def __init__(self, name: str) -> None:
        self._folds = name == "english"  # which has accents in foreign words alone
        self._stemmer = None if name == NONE else Stemmer.Stemmer(name)
        self._lock = Lock()  # a stemmer serves one thread at a time

    def __missing__(self, word: str) -> str:
        form = fold(word) if self._folds else word
        if self._stemmer is not None:
            with self._lock:
                form = self._stemmer.stemWord(form)
        stem = self[word] = fold(form)
        return stem


def languages() -> list[str]:
    """List the languages that words can be in."""
    return [NONE, *(name for name in Stemmer.algorithms() if "porter" not in name)]


@lru_cache(maxsize=8)
def language(name: str) -> Language:
    """Return a language, or say which there are."""
    if name not in languages():
        raise InputError(f"There is no language '{name}'. There are: {', '.join(languages())}.")
    return Language(name)


def fold(word: str) -> str:
    """Write a word in lower case without accents.

    >>> fold("stra\u00dfe"), fold("\u00e9l\u00e8ve")
    ('strasse', 'eleve')
    """
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFD", word.translate(_FOLDED))
    kept = "".join(letter for letter in letters if not "\u0300" <= letter <= "\u036f")
    return unicodedata.normalize("NFC", kept)


def find_language(texts: Iterable[str]) -> str:
    """Tell the language of texts by their stop words; "none" where there are several.

    Texts without any, such as lists of titles, count as English where their letters are Latin.

    >>> find_language(["Der Hund schläft auf dem Sofa.", "Die Katze ist nicht da."])
    'german'
    """
    hits: Counter[str] = Counter()
    told: list[dict[str, int]] = []
    n_letters = n_latin = 0
    for text in islice(texts, _LOOKED_AT):
        words = tokenize(text[:_PREFIX], shortest=1)
        n_letters += sum(map(len, words))
        n_latin += sum(len(word) for word in words if word.isascii())
        counts = {name: sum(map(stops.__contains__, words)) for name, stops in STOP_WORDS.items()}
        if max(counts.values()) > _EVIDENCE * len(words):
            told.append(counts)
            hits.update(counts)
    if not told:
        return "english" if n_latin >= _LATIN * n_letters else NONE
    best = max(hits, key=lambda name: hits[name])
    n_fine = sum(counts[best] >= _KIN * max(counts.values()) for counts in told)
    return best if n_fine >= _MOST * len(told) else NONE
