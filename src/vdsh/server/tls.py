"""TLS: a certificate and its key, looked at before the service starts."""

import ssl
from typing import NamedTuple

from vdsh.errors import InputError, MissingFileError


class Certificate(NamedTuple):
    """The files of a certificate, with those that vouch for it, and of its key."""

    cert: str
    key: str


def check_tls(cert: str | None, key: str | None) -> Certificate | None:
    """Return the two files where both are given and fit together; None where neither is."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise InputError("TLS needs a certificate and its key: give --tls-cert and --tls-key.")
    try:
        # A key with a password would ask for it at the terminal of each worker.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except FileNotFoundError as error:
        raise MissingFileError(f"No file '{cert}' or no file '{key}'.") from error
    except ssl.SSLError as error:
        raise InputError(
            f"'{cert}' and '{key}' are not a certificate and its key in PEM format, without a "
            f"password: {error.reason or error}."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read '{cert}' or '{key}': {error.strerror}.") from error
    return Certificate(cert, key)
