"""Records which mutants each test reaches, and how long it takes."""

import concurrent.futures
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import switched
from compiling import Program

TEST_SECONDS_MAX = 300
# Tests that count instructions would count the switches, too.
SKIPPED = "feed_cost"


@dataclass(frozen=True)
class Test:
    program: Program
    name: str
    seconds: float
    passed: bool
    mutants: list[int]


def names(listing: str) -> list[str]:
    """Parses the output of a test program for `--list --format terse`."""
    tests = [line.removesuffix(": test") for line in listing.splitlines() if line.endswith(": test")]
    return [name for name in tests if SKIPPED not in name]


def record(programs: list[Program], jobs: int, tell: Callable[[str], None]) -> list[Test]:
    """Runs each test alone, without a mutant."""
    tests = []
    for program in programs:
        command = [program.path, "--list", "--format", "terse"]
        listing = subprocess.run(command, cwd=program.folder, stdout=subprocess.PIPE, encoding="utf-8", check=True)
        tests += [(program, name) for name in names(listing.stdout)]
    tell(f"recording which mutants {len(tests):,} tests reach")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda test: _record_one(*test, Path(folder)), tests))


def _record_one(program: Program, name: str, folder: Path) -> Test:
    handle, passed_by = tempfile.mkstemp(dir=folder)
    os.close(handle)
    start = time.monotonic()
    outcome = switched.run(program, [name], passed_by, TEST_SECONDS_MAX)
    seconds = time.monotonic() - start
    mutants = sorted(set(map(int, Path(passed_by).read_text().split())))
    return Test(program, name, seconds, outcome is None, mutants)
