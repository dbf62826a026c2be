"""Runs the suite against a peer: in one role, over one transport."""

import collections
import contextlib
import os
import queue
import re
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import cases
import report

HERE = Path(__file__).resolve().parent

START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 10
ATTEMPTS_MAX = 5

ADDRESS = re.compile(r"\bwss?://127\.0\.0\.1:\d+\b")


class RunError(Exception):
    """A run that could not be executed."""


@dataclass(frozen=True)
class Setup:
    """The settings that all runs share."""

    python: Path
    server: Path
    client: Path
    results: Path
    seconds_max: float


@dataclass(frozen=True)
class Run:
    """The peer's role (`server` or `client`), whether TLS is used, the server's engine, the
    reactor's driver, whether an HTTP/2 bridge is in front of the server, and whether compression is
    tested."""

    role: str
    tls: bool
    engine: str = "tokio"
    driver: str = ""
    bridged: bool = False
    compresses: bool = True

    @property
    def name(self):
        """Returns the name of the run and of the directory of its results."""
        engine = [] if self.engine == "tokio" else [self.engine]
        driver = [self.driver] if self.driver else []
        bridge = ["http2"] if self.bridged else []
        return "-".join([self.role, "wss" if self.tls else "ws", *engine, *driver, *bridge])

    def execute(self, setup, ids):
        """Runs the cases `ids`. Returns their verdicts, in order, and problems that do not belong
        to a case.

        A racing case that did not pass is run again, up to `ATTEMPTS_MAX` times in all.
        """
        ids = [case for case in ids if self._takes(case)]
        if not ids:
            return [], []
        directory = setup.results / self.name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        verdicts, problems = {}, []
        again = ids
        for attempt in range(1, ATTEMPTS_MAX + 1):
            results = directory / f"cases-{attempt}.jsonl"
            with open(directory / f"log-{attempt}.txt", "w", encoding="utf-8") as log:
                problems += self._attempt(setup, again, results, log)
            verdicts |= report.read(results, attempt) if results.exists() else {}
            again = [case for case in again if case in cases.RACING and case in verdicts and not verdicts[case].passed]
            if problems or not again:
                break
        return [verdicts.get(case) or report.missing(case) for case in ids], problems

    def _takes(self, case):
        """Returns whether the peer supports the subject of the case."""
        return self.compresses or cases.section(case) not in cases.COMPRESSION

    def _attempt(self, setup, ids, results, log):
        """Runs the suite once. Returns the problems of the run as a whole."""
        fuzz = [setup.python, "-E", "-W", "ignore", HERE / "fuzz.py", "--results", results, "--cases", ",".join(ids)]
        if self.role == "server":
            options = [*(["--tls-self-signed"] if self.tls else []), *self._engine_options()]
            listen = [setup.server, "echo", "--listen", "127.0.0.1:0", *options]
            with Process("server", listen, log) as server, self._front(server.address(), log) as front:
                with Process("suite", [*fuzz, "--url", front.address()], log) as client:
                    problems = client.finish(setup.seconds_max)
                return problems + server.still_runs() + front.still_runs()
        with Process("suite", [*fuzz, *(["--tls"] if self.tls else [])], log) as suite:
            drive = [setup.client, suite.address(), "--agent", "linerate", *(["--tls-insecure"] if self.tls else [])]
            with Process("client", drive, log) as client:
                return client.finish(setup.seconds_max) + suite.finish(STOP_SECONDS_MAX)

    def _front(self, server, log):
        """Returns the peer of the suite: the bridge, or else the server itself."""
        return Bridge(server, log) if self.bridged else Directly(server)

    def _engine_options(self):
        engine = [] if self.engine == "tokio" else ["--engine", self.engine]
        return ["--compression", "on", *engine, *(["--driver", self.driver] if self.driver else [])]


class Directly(contextlib.nullcontext):
    """A server without a bridge."""

    def __init__(self, server):
        super().__init__(self)
        self.server = server

    def address(self):
        return self.server

    def still_runs(self):
        return []


class Process(contextlib.AbstractContextManager):
    """A child process whose output goes to a log; it is ended when the context ends."""

    children = set()
    stopping = False

    @classmethod
    def stop_all(cls):
        """Ends every child, and prevents new ones from starting."""
        cls.stopping = True
        for child in list(cls.children):
            child.terminate()

    def __init__(self, name, command, log, **options):
        if self.stopping:
            raise RunError("stopped")
        self.name = name
        self.log = log
        self.addresses = queue.SimpleQueue()
        self.tail = collections.deque(maxlen=5)
        try:
            self.child = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                **options,
            )
        except OSError as error:
            raise RunError(f"cannot start the {name}: {error}") from error
        self.children.add(self.child)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.children.discard(self.child)
        self.reader.join(STOP_SECONDS_MAX)

    def _read(self):
        addressed = False
        for line in self.child.stdout:
            self.log.write(f"{self.name}: {line}")
            self.tail.append(line.rstrip())
            if not addressed and (match := ADDRESS.search(line)):
                addressed = True
                self.addresses.put(match[0])
        self.log.flush()
        self.addresses.put(None)

    def address(self):
        """Waits until the process prints the address on which it listens."""
        with contextlib.suppress(queue.Empty):
            if address := self.addresses.get(timeout=START_SECONDS_MAX):
                return address
        raise RunError(f"the {self.name} did not print an address: {self._last_words()}")

    def finish(self, seconds_max):
        """Waits for the process to end. Returns the problem if it takes too long or ends with an
        error."""
        started = time.monotonic()
        try:
            status = self.child.wait(seconds_max)
        except subprocess.TimeoutExpired:
            return [f"the {self.name} did not finish within {time.monotonic() - started:.0f} s"]
        return [f"the {self.name} exited with status {status}: {self._last_words()}"] if status else []

    def still_runs(self):
        """Returns the problem if a server has exited before it was stopped."""
        status = self.child.poll()
        return [] if status is None else [f"the {self.name} exited with status {status}: {self._last_words()}"]

    def _last_words(self):
        self.reader.join(1)
        return " | ".join(self.tail) or "no output"


class Bridge(Process):
    """nghttpx, which forwards WebSockets over HTTP/1.1 as streams of HTTP/2 (RFC 8441)."""

    def __init__(self, server, log):
        # It refuses to choose a port itself, but accepts a listening socket.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host, self.port = listener.getsockname()
            command = [
                "nghttpx", "--conf=/dev/null", "--single-process", "--workers=1", "--accesslog-file=/dev/null",
                f"--frontend={host},{self.port};no-tls",
                f"--backend={server.removeprefix('ws://').replace(':', ',')};;proto=h2",
            ]
            inherited = {"NGHTTPX_ACCEPT_1": f"tcp,{listener.fileno()}"}
            super().__init__("bridge", command, log, env=os.environ | inherited, pass_fds=[listener.fileno()])

    def address(self):
        return f"ws://127.0.0.1:{self.port}"
