"""Addresses of stores: what is read from them, and that no message shows a password."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vdsh.errors import InputError
from vdsh.store import open_store, without_password
from vdsh.store.addresses import read_address

# Letters that stand nowhere else in the URL; between them whatever people put into passwords.
marks = st.text("/?#@:&%[]\\ \n;+=", max_size=4)
passwords = st.tuples(st.just("XJ"), marks, st.just("QZ"), marks, st.just("KW")).map("".join)
forms = st.sampled_from(
    [
        "postgresql://ann:{}@host:5432/db?table=news",
        "postgres://:{}@host/db",
        "milvus://ann:{}@host:19530/news?secure=true",
        "postgresql:ann:{}@host/db",
        "postgresql:/ann:{}@host/db",
        "redis://ann:{}@host/db",
    ]
)


def said(url):
    """All that is said of a URL: its shown form, or the error."""
    try:
        address = read_address(url)
    except InputError as error:
        return f"{without_password(url)} {error}"
    return f"{without_password(url)} {address.shown} {address.place} {address.name}"


@given(form=forms, password=passwords)
@example("postgresql:ann:{}@host/db", "XJQZ://KW")
@example("postgresql://ann:{}@host/db", "XJ/QZ")
@example("postgresql://ann:{}@host/db", "12/XJ")
@example("postgresql://ann:{}@host/db", "p@XJ/QZ@KW")
def test_a_password_is_in_no_message_however_it_is_written(form, password):  # 16 A12
    text = said(form.format(password))
    assert not [part for part in ("XJ", "QZ", "KW") if part in text]


@given(password=passwords, name=st.sampled_from(["password", "sslpassword", "token", "PassWord"]))
def test_a_password_among_the_options_is_hidden_too(password, name):
    text = without_password(f"postgresql://host/db?{name}={password.replace('=', '')}&table=news")
    assert text == f"postgresql://host/db?{name}=***&table=news"


def test_the_advice_on_a_password_does_not_print_it():  # 16 A12
    with pytest.raises(InputError, match=r"'postgresql://u:\*\*\*@h/db' is not a URL") as caught:
        open_store("postgresql://u:XJ/QZ@h/db")
    assert "percent form" in str(caught.value)
    assert "XJ" not in str(caught.value)


def test_a_password_in_percent_form_is_read():
    address = read_address("postgresql://u:pa%2Fss%40@h/db?table=a%40b")
    assert (address.password, address.place, address.name) == ("pa/ss@", "h", "db")
    assert address.options == {"table": "a@b"}
