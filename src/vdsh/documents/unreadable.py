"""Why a file gives no text: the error that every reader raises."""

from vdsh.errors import InputError

NOT_TEXT = "is not text"
TOO_LARGE = "has more than"


class UnreadableError(InputError):
    """A file has no text to read; the message is the reason alone, such as "is not text"."""

    passing = False


class UnreadableNowError(UnreadableError):
    """A file cannot be read now, and may be later: a lack of rights, half of a file, no parser."""

    passing = True
