"""The log: JSON lines on standard error, one a request; never a token, a text or a query string."""

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

import orjson

log = logging.getLogger("vdsh.access")


class JsonLines(logging.Formatter):
    """Write a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {"time": time, "level": record.levelname.lower()}
        if isinstance(record.args, dict):
            fields |= record.args
        else:
            fields["message"] = record.getMessage()
        if record.exc_info:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return orjson.dumps(fields, default=str).decode()


def set_up_log(*, requests: bool) -> None:
    """Send what the service and uvicorn have to say to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    # What uvicorn warns of is what clients send: a flood must not fill the log.
    for name, level in (("vdsh", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    log.disabled = not requests
