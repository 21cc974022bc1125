"""One HTTP exchange that is over by its deadline, whatever the server does.

The time limits of HTTP libraries hold for each read; a server that sends a byte now and then keeps
them waiting for ever. Here a timer cuts the connection when the whole time is up.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from spanwise.errors import ParamsError

LONGEST_BODY = 16 * 2**20
"""Bytes: far above any answer of a bounded number of tokens."""


class Broken(Exception):
    """No whole HTTP answer came.

    reached: True if a connection was made; False if nothing listens there.
    expired: True if the time was up.
    """

    def __init__(self, reason: str, reached: bool, expired: bool) -> None:
        super().__init__(reason)
        self.reached = reached
        self.expired = expired


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP answer. retry_after_s: what the server asks to wait, or None."""

    status: int
    body: bytes
    retry_after_s: float | None


def check_url(url: str) -> None:
    """Refuse what is no address of a server.

    raises: ParamsError.
    """
    try:
        parts = urlsplit(url)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    except ValueError:
        fit = plain = False
    if not (fit and plain and url.isascii() and url.isprintable() and " " not in url):
        raise ParamsError(
            f"base_url {_shown(url)!r}: expected an address as http://127.0.0.1:8000/v1 (a key "
            "goes into an environment variable, never into the address)"
        )


def _shown(url: str) -> str:
    """An address without what may be a key in it: a user, a password, a query."""
    bare = re.sub(r"(?s)^(\w+://)?.*@", r"\1***@", url)
    return re.sub(r"(?s)[?#].*", "?***", bare)


class Exchange:
    """One request and its answer; `cut` ends it from another thread."""

    def __init__(self, url: str, seconds: float, connect_s: float) -> None:
        self._parts = urlsplit(url)
        self._seconds, self._connect_s = seconds, min(seconds, connect_s)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._over = self._expired = False

    def run(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> Reply:
        """Send the request and read the answer.

        raises: Broken if none came whole in time.
        """
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(
            self._parts.hostname or "", self._parts.port, timeout=self._connect_s
        )
        timer = threading.Timer(self._seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            self._watch(connection.sock)
            connection.request(
                method, self._parts.path or "/", body=body,
                headers={"Connection": "close", "Accept": "application/json", **headers},
            )
            with connection.getresponse() as response:
                read = response.read(LONGEST_BODY + 1)
                if len(read) > LONGEST_BODY:
                    raise ValueError(f"the answer is longer than {LONGEST_BODY} bytes")
                if response.length:
                    raise ValueError(f"the answer broke off, {response.length} bytes short")
                wait = response.getheader("Retry-After", "")
                return Reply(
                    response.status, read,
                    float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 9 else None,
                )
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._expired or isinstance(error, TimeoutError):
                raise Broken(
                    f"no whole answer within {self._seconds:g} s" if self._socket
                    else f"no connection within {self._connect_s:g} s",
                    self._socket is not None, True,
                ) from None
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise Broken(said[:300], self._socket is not None, False) from None
        finally:
            timer.cancel()
            connection.close()

    def cut(self) -> None:
        """End the exchange now; `run` raises Broken."""
        with self._lock:
            self._over = True
            if self._socket is not None:
                # Of the plain class: the TLS layer would first wait for its own goodbye.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _expire(self) -> None:
        self._expired = True
        self.cut()

    def _watch(self, sock: socket.socket) -> None:
        with self._lock:
            self._socket = sock
            over = self._over
        if over:
            raise OSError("cut off")
        sock.settimeout(self._seconds)
