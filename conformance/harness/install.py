"""Installs the suite from the package index into the project's own cache."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE.parent / "requirements.txt"
CACHE = HERE.parent.parent / ".cache" / "autobahn"
PYTHON = CACHE / "bin" / "python"

ATTEMPTS_MAX = 3
PIP_SECONDS_MAX = 600


def ensure():
    """Returns the interpreter that has the suite, after installing it if necessary."""
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with open(CACHE.parent / "autobahn.lock", "w") as lock:
        # If two runs start at once, the second waits and finds the suite installed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = CACHE / "stamp"
        wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
        if not (stamp.is_file() and stamp.read_text() == wanted):
            print(f"installing the Autobahn test suite into {CACHE}", file=sys.stderr, flush=True)
            _install()
            stamp.write_text(wanted)
    return PYTHON


def _install():
    shutil.rmtree(CACHE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(CACHE)], check=True)
    # The suite and Autobahn are published as source, so their build tools are installed first.
    _pip("--constraint", str(REQUIREMENTS), "setuptools")
    _pip("--no-deps", "--no-build-isolation", "--use-pep517", "--no-compile", "--requirement", str(REQUIREMENTS))


def _pip(*arguments):
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *arguments]
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            subprocess.run(command, check=True, timeout=PIP_SECONDS_MAX, stdin=subprocess.DEVNULL)
            return
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            if attempt == ATTEMPTS_MAX:
                raise
            time.sleep(5 * attempt)
