"""A session with Milvus: calls tried again where the server went away, errors as sentences."""

import time
from contextlib import nullcontext, suppress
from typing import Any

from grpc import RpcError
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from vdsh.errors import EngineError
from vdsh.store.addresses import Address
from vdsh.store.engines.milvus import lite

LONGEST_CALL = 10.0  # seconds until a call without an answer is made again
LONGEST_LOAD = 600.0  # seconds; millions of documents take their time to come into memory
GIVEN_UP = 0.06  # seconds that an interruption lasts; whoever waits no more sends one every 0.05
OPENED_IN = 10.0  # seconds to try when a store is opened
PAUSE = 0.1
# Otherwise gRPC remembers for a while that a server was away, for all connections to it.
OWN_CHANNEL = {"grpc.use_local_subchannel_pool": 1}
# Milvus Lite complains of the driver's habit to ask every ten seconds whether it is still there.
WITHOUT_PINGS = {"grpc.keepalive_time_ms": 2**31 - 1}
CLOSED = "should create connection first"  # after a vain attempt to get the connection back
LOST: tuple[str, ...] = ("Fail connecting", "UNAVAILABLE", "DEADLINE_EXCEEDED", "Retry timeout")
LOST += ("closed channel", CLOSED, "context deadline exceeded")  # the last is said between servers
LOST += ("not loaded", "NotLoad")  # after a restart
MISSING = ("collection not found", "can't find collection")
REFUSED = ("auth", "Auth", "permission", "UNAUTHENTICATED")


class MissingCollectionError(EngineError):
    """There is no such collection, or no more."""


class Session:
    """A connection to Milvus, or to a Milvus Lite of our own, made anew when it breaks.

    `wait`: seconds to try again after the connection was lost.
    """

    def __init__(self, address: Address, *, wait: float) -> None:
        self._address = address
        self.wait = wait
        self.loaded: list[str] = []  # collections that must be in memory, after a restart too
        self._given_up = 0.0  # until when nobody waits for what is asked
        self._lite = None
        if address.scheme == "milvus-lite":
            self._lite = lite.acquire(address.place)
        # An upsert of Milvus Lite deletes first: nobody may look in between.
        self._turn: Any = nullcontext() if self._lite is None else self._lite.turn
        self._client: Any = None
        try:
            self._client = self._connect()
        except BaseException:
            self.close()
            raise

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the client; it must be harmless to call it twice."""
        deadline = time.monotonic() + self.wait
        while True:
            self._check_waited_for()
            try:
                loads = method == "load_collection"
                timeout = LONGEST_LOAD if loads else min(self.wait, LONGEST_CALL)
                with self._turn:
                    return getattr(self._client, method)(*arguments, timeout=timeout, **options)
            except (MilvusException, RpcError, ValueError) as error:
                if not any(word in str(error) for word in LOST):
                    raise self._explain(error) from error
                if time.monotonic() + PAUSE > deadline:
                    raise self._gave_up(error) from error
            time.sleep(PAUSE)
            self._reconnect()

    def interrupt(self) -> None:
        """Have the next call of what is asked now raise; a running one ends by its timeout."""
        self._given_up = time.monotonic() + GIVEN_UP

    def _check_waited_for(self) -> None:
        """Raise where interruptions go on; the last one of an earlier question is waited out."""
        if time.monotonic() < self._given_up:
            time.sleep(GIVEN_UP)
            if time.monotonic() < self._given_up:
                raise EngineError(f"A question to '{self._address.shown}' was given up.")

    def load(self, *collections: str) -> None:
        """Bring collections into the server's memory, now and after each restart."""
        self.loaded = [*collections]
        for name in collections:
            self.call("load_collection", name)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._lite is not None:
            lite.release(self._lite)
            self._lite = None

    def _connect(self) -> Any:
        """Connect; for a moment gRPC may still think that a server is away which is back."""
        address, timeout = self._address, min(self.wait, LONGEST_CALL)
        token = f"{address.user}:{address.password}" if address.user else ""
        uri = f"http://{address.place}" if self._lite is None else self._lite.uri
        channel = OWN_CHANNEL | ({} if self._lite is None else WITHOUT_PINGS)
        deadline = time.monotonic() + min(self.wait, OPENED_IN)
        while True:
            try:
                client = MilvusClient(uri, token=token, timeout=timeout, grpc_options=channel)
                client.list_collections(timeout=timeout)
                return client
            except (MilvusException, RpcError, ValueError) as error:
                reason = self._reason(error)
            refused = any(word in reason for word in REFUSED)
            if refused or time.monotonic() + PAUSE > deadline:
                away = "Is the server running, and can it be reached from here?"
                advice = "Check the user and the password." if refused else away
                raise EngineError(f"Could not connect to '{address.shown}': {reason}. {advice}")
            time.sleep(PAUSE)

    def _reconnect(self) -> None:
        """Try to get the connection back; failing is left to the next call."""
        try:
            if self._lite is not None:
                self._lite.revive()
            with suppress(MilvusException):  # it may be closed already
                self._client.close()
            self._client = self._connect()
            for name in self.loaded:
                self._client.load_collection(name, timeout=LONGEST_LOAD)
        except (EngineError, MilvusException, RpcError, ValueError):
            time.sleep(PAUSE)

    def _explain(self, error: Exception) -> EngineError:
        reason = self._reason(error)
        missing = any(words in reason for words in MISSING)
        kind = MissingCollectionError if missing else EngineError
        return kind(f"Milvus at '{self._address.shown}' refused: {reason}.")

    def _gave_up(self, error: Exception) -> EngineError:
        reason = "the server does not answer" if CLOSED in str(error) else self._reason(error)
        return EngineError(
            f"Lost the connection to '{self._address.shown}' and did not get it back in "
            f"{self.wait:g} s ({reason}). What was committed before is kept; the same can be "
            "done again."
        )

    def _reason(self, error: Exception) -> str:
        """Take the first line of what the server or the driver says; a password is never in it."""
        # The driver says of every error while connecting that the server may be away.
        told = next((e for e in (error, error.__cause__) if isinstance(e, RpcError)), None)
        text = getattr(told, "details", str)() or getattr(error, "message", None) or str(error)
        reason = str(text).strip().partition("\n")[0].rstrip(".")
        if reason.startswith("stack trace:"):  # Milvus 2.3: what happened comes last
            reason = str(text).strip().rpartition("\n")[2].partition(": ")[2]
        return reason.replace(self._address.password, "***") if self._address.password else reason
