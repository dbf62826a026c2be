"""Runs the suite itself, as a fuzzing client or server, in the interpreter that has the suite.

Each finished case becomes one line of JSON in the file of results. It is written at once, so that
an interrupted run keeps its results. As a server, this prints its address as the first line of
standard output. The output of the suite goes to standard error.
"""

import argparse
import contextlib
import datetime
import json
import socket
import sys

from twisted.internet import reactor, ssl
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python import log

import octets
import translate

fuzzing = translate.load()


class Recording:
    """A fuzzing factory that writes each result at once, instead of reports at the end."""

    results = None

    def logCase(self, result):
        super().logCase(result)
        # The cases of section 6 send invalid UTF-8, and the peer's close reason need not be valid
        # either.
        json.dump(result, self.results, default=str)
        self.results.write("\n")
        self.results.flush()

    def createReports(self):
        pass


class ClientProtocol(octets.Boundary, fuzzing.FuzzingClientProtocol):
    """One case run against a server."""


class ServerProtocol(octets.Boundary, fuzzing.FuzzingServerProtocol):
    """One case run against a client, or one of the client's requests about the run."""

    def connectionLost(self, reason):
        super().connectionLost(reason)
        if getattr(self, "path", None) == "/updateReports":
            reactor.stop()


class ClientFactory(Recording, fuzzing.FuzzingClientFactory):
    """Runs the cases one after the other against a server."""


class ServerFactory(Recording, fuzzing.FuzzingServerFactory):
    """Runs the case that each connecting client requests."""

    protocol = ServerProtocol


def throwaway_identity():
    """Returns TLS options with a new certificate for 127.0.0.1, which is kept only in memory."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID
    from OpenSSL import crypto

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return ssl.CertificateOptions(
        privateKey=crypto.PKey.from_cryptography_key(key),
        certificate=crypto.X509.from_cryptography(certificate),
    )


def listen(cases, tls):
    """Listens on a free port and returns the address for clients."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    listener.setblocking(False)
    url = f"{'wss' if tls else 'ws'}://127.0.0.1:{listener.getsockname()[1]}"
    # The suite refuses a Host header whose port differs from its address, so the socket is opened
    # first.
    factory = ServerFactory({"url": url, "cases": cases})
    if tls:
        factory = TLSMemoryBIOFactory(throwaway_identity(), False, factory)
    reactor.adoptStreamPort(listener.fileno(), socket.AF_INET, factory)
    listener.close()
    return url


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="only print the ids of all cases of the suite")
    parser.add_argument("--results", help="file to write the results to")
    parser.add_argument("--cases", help="ids of the cases, separated by commas")
    parser.add_argument("--url", help="the server to test; without it, be a server that tests clients")
    parser.add_argument("--tls", action="store_true", help="as a server, listen on wss://")
    args = parser.parse_args()
    if args.list:
        print("\n".join(case.__name__.removeprefix("Case").replace("_", ".") for case in fuzzing.Cases))
        return
    cases = args.cases.split(",")

    # An exception in the suite ends its case; its traceback goes to the log.
    log.startLoggingWithObserver(
        lambda event: event.get("isError") and print(log.textFromEventDict(event), file=sys.stderr), setStdout=False
    )
    with open(args.results, "w", encoding="utf-8") as Recording.results, contextlib.redirect_stdout(sys.stderr):
        if args.url:
            # The factory looks up its protocol in the module.
            fuzzing.FuzzingClientProtocol = ClientProtocol
            ClientFactory({"cases": cases, "servers": [{"agent": "server", "url": args.url}]})
        else:
            print(listen(cases, args.tls), file=sys.__stdout__, flush=True)
        reactor.run()


if __name__ == "__main__":
    main()
