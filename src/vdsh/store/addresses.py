"""Where a store is: the path of a folder, or the URL of an engine."""

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from vdsh.errors import InputError, suggest
from vdsh.files import data_folder
from vdsh.persistence import MANIFEST

STORE_FILE = "store.sqlite"  # which a folder with a store has
SCHEMES = ("milvus", "milvus-lite", "postgresql")
ALIASES = {"postgres": "postgresql"}
FORMS = "milvus://host:19530/collection, milvus-lite:file.db, postgresql://host/database?table=name"
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://|(milvus-lite):")
HALF_A_URL = re.compile(r"(postgres|postgresql|milvus):", re.IGNORECASE)
# Up to the last @ there is, since a password may hold anything before it was put in percent form.
PASSWORD = re.compile(r"(//[^:@]*):.*@", re.DOTALL)
PASSWORD_OPTION = re.compile(r"(?is)([?&]\w*(?:pass|token)\w*=).*?(?=&\w+=|$)")
PERCENT = "Write special characters of a password in percent form, such as %40 for @ and %2F for /."


class Address(NamedTuple):
    """The URL of an engine, taken apart."""

    scheme: str  # one of `SCHEMES`
    place: str  # host and port, or the file
    name: str  # what follows the host: a database or a collection
    user: str
    password: str
    options: dict[str, str]  # what follows the question mark
    shown: str  # the URL without the password, for messages

    def check_options(self, known: tuple[str, ...]) -> None:
        """Raise for an option that nobody would read."""
        for name in self.options:
            if name not in known:
                raise InputError(f"'{self.shown}' has no option '{name}'. {suggest(name, known)}")

    def without_options(self, names: tuple[str, ...]) -> str:
        """Write the URL again, with the password and without some options."""
        kept = {name: value for name, value in self.options.items() if name not in names}
        password = f":{quote(self.password, safe='')}" if self.password else ""
        login = f"{quote(self.user, safe='')}{password}@" if self.user or password else ""
        query = f"?{urlencode(kept, quote_via=quote)}" if kept else ""
        return f"{self.scheme}://{login}{self.place}/{quote(self.name)}{query}"


class Place(NamedTuple):
    """Where the store is that a person named, and what to tell that person about it."""

    path: str  # or URL
    hint: str = ""


def find_place(given: str) -> Place:
    """Say where the store is that was named on the command line.

    A name alone, such as `notes`, is a store in the user's data folder (`vdsh.files.data_folder`).
    What has a separator, `.` and `..` are paths, and URLs are URLs. A store or a model that lies in
    the current folder under that name is taken all the same.
    """
    if not is_bare_name(given):
        return Place(given)
    folder = data_folder()
    inside, here = folder / given, Path(given)
    if (here / STORE_FILE).is_file() and here.absolute() != inside:
        return Place(
            given,
            f"Hint: '{given}' is taken for the store in this folder. Write ./{given} for it; a "
            f"name alone means a store in {folder}.",
        )
    return Place(given if (here / MANIFEST).is_file() else str(inside))


def is_bare_name(given: str) -> bool:
    """Say whether this is a name and neither a path nor a URL.

    >>> list(map(is_bare_name, ["notes", "./notes", "~", "..", "postgres:x", "milvus-lite:a.db"]))
    [True, False, False, False, False, False]
    """
    if not given or given in (".", "..", "~") or "\0" in given:
        return False
    is_url = URL.match(given) or HALF_A_URL.match(given)
    return not is_url and not {"/", os.sep} & set(given) and not Path(given).drive


def short_name(path: str) -> str:
    """Write the path of a store as shortly as the command line takes it.

    >>> short_name("./notes"), short_name(str(data_folder() / "notes"))
    ('./notes', 'notes')
    """
    name = Path(path).name
    return name if is_bare_name(name) and find_place(name).path == path else path


def read_address(path: str) -> Address | None:
    """Take the URL of an engine apart; return None for what is a path.

    >>> read_address("news-store") is None
    True
    >>> address = read_address("postgresql://ann:secret@db/news?table=posts")
    >>> address.shown, address.name, address.options
    ('postgresql://ann:***@db/news?table=posts', 'news', {'table': 'posts'})
    """
    found = URL.match(path)
    if not found:
        if half := HALF_A_URL.match(path):
            raise InputError(f"After {half[0]} a URL has two slashes. Give one of {FORMS}.")
        return None
    given = (found[1] or found[2]).lower()
    scheme = ALIASES.get(given, given)
    if scheme not in SCHEMES:
        raise InputError(
            f"There is no store of the kind '{given}'. {suggest(given, SCHEMES)} "
            f"Give the path of a folder, or one of {FORMS}."
        )
    if scheme == "milvus-lite":
        return _file_address(path)
    return _host_address(scheme, path)


def without_password(path: str) -> str:
    """Write a path or URL so that it can be shown.

    >>> without_password("milvus://root:Milvus@localhost:19530/news")
    'milvus://root:***@localhost:19530/news'
    """
    if not URL.match(path):
        half = HALF_A_URL.match(path)
        return f"{half[0]}***" if half else path
    return PASSWORD_OPTION.sub(r"\1***", PASSWORD.sub(r"\1:***@", path))


def _file_address(path: str) -> Address:
    file, _, query = path.partition(":")[2].removeprefix("//").partition("?")
    if not file:
        raise InputError("milvus-lite: needs a file, such as milvus-lite:news.db.")
    return Address("milvus-lite", file, "", "", "", _options(path, query), path)


def _host_address(scheme: str, path: str) -> Address:
    shown = without_password(path)
    try:
        parts = urlsplit(path)
        _ = parts.port
    except ValueError:  # what it says may hold a part of the password
        raise InputError(f"'{shown}' is not a URL that can be read. {PERCENT}") from None
    if "@" in parts.path + parts.query + parts.fragment:  # the password ended the host too early
        raise InputError(f"'{shown}' has an @ after the host. {PERCENT}")
    login, _, place = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    name = unquote(parts.path.removeprefix("/"))
    options = _options(path, parts.query)
    return Address(scheme, place, name, unquote(user), unquote(password), options, shown)


def _options(path: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise InputError(
            f"The options of '{without_password(path)}' must be name=value, joined by &."
        ) from None
