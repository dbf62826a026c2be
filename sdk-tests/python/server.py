"""The server under test, and tokens for it."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "sdk-tests" / "linerate.toml"
BINARY = os.environ.get("LINERATE_BIN", ROOT / "target" / "release" / "linerate")

# As in the configuration.
API_KEY = "the key of the sdk tests"
SECRET = b"the secret of the sdk tests"


class Server:
    """`linerate serve` on a free port."""

    def __init__(self, process, url):
        self._process = process
        self.url = url

    @classmethod
    async def start(cls, toml="", **environment):
        """Starts the server; `toml` is added to its configuration, and `environment` changes it."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False) as configuration:
            configuration.write(CONFIGURATION.read_text() + toml)
        process = await asyncio.create_subprocess_exec(
            BINARY,
            "serve",
            "--config",
            configuration.name,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **environment},
        )
        async for line in process.stdout:
            address = re.search(r"http://127\.0\.0\.1:\d+", line.decode())
            if address:
                os.unlink(configuration.name)
                return cls(process, address[0])
        raise RuntimeError(f"{BINARY} did not print an address")

    @property
    def endpoint(self):
        return self.url.replace("http", "ws") + "/connection/websocket"

    async def api(self, method, **parameters):
        """Calls the server API."""
        request = urllib.request.Request(
            f"{self.url}/api/{method}",
            data=json.dumps(parameters).encode(),
            headers={"Content-Type": "application/json", "X-API-Key": API_KEY},
        )
        reply = await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(request, timeout=10)))
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]

    async def stop(self):
        self._process.kill()
        await self._process.wait()


def token(**claims):
    """Returns a token, created like an application's backend would."""
    parts = [{"alg": "HS256", "typ": "JWT"}, {"exp": int(time.time()) + 600, **claims}]
    head = b".".join(_encoded(json.dumps(part).encode()) for part in parts)
    signature = hmac.new(SECRET, head, hashlib.sha256).digest()
    return (head + b"." + _encoded(signature)).decode()


def _encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")
