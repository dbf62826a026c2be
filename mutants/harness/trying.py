"""Switches mutants on, one at a time, for the tests that reach them."""

import concurrent.futures
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import switched
from compiling import Program
from recording import Test

# Tests up to this length run in one process per program, ordered by duration; longer ones run
# alone.
SHORT_SECONDS_MAX = 0.15
# A test that exceeds its usual time by this factor and these additional seconds counts as hanging.
SLOWER_MAX, EXTRA_SECONDS_MAX = 10, 15
TELL_EVERY_SECONDS = 10

NOT_NOTICED = "not noticed"
NO_TEST = "no test reaches it"


@dataclass(frozen=True)
class Step:
    """Tests that run in one process."""
    program: Program
    tests: list[str]
    seconds_max: float


def steps(tests: Iterable[Test]) -> list[Step]:
    """Returns the steps in which tests run, shortest first."""
    short, long = {}, []
    for test in sorted(tests, key=lambda test: test.seconds):
        if test.seconds < SHORT_SECONDS_MAX:
            short.setdefault(test.program, []).append(test)
        else:
            long.append([test])
    return [
        Step(group[0].program, [test.name for test in group],
             EXTRA_SECONDS_MAX + SLOWER_MAX * sum(test.seconds for test in group))
        for group in [*short.values(), *long]
    ]


def outcome(mutant: int, tests: list[Test]) -> str:
    """Returns how a mutant was detected, as `switched.run` does, or that it was not."""
    if not tests:
        return NO_TEST
    for step in steps(tests):
        noticed = switched.run(step.program, step.tests, str(mutant), step.seconds_max)
        if noticed:
            return noticed
    return NOT_NOTICED


def try_all(
    mutants: list[int], tests: list[Test], jobs: int, minutes: float | None, keep: Callable[[int, str], None], tell,
) -> None:
    """Tries mutants, `jobs` at a time, and calls `keep` with each outcome. Starts none after
    `minutes`."""
    past = defaultdict(list)
    for test in tests:
        if test.passed:
            for mutant in test.mutants:
                past[mutant].append(test)
    begin = time.monotonic()
    progress = Progress(len(mutants), tell)
    is_over = threading.Event()

    def one(mutant: int) -> None:
        if is_over.is_set() or minutes is not None and time.monotonic() - begin > 60 * minutes:
            return
        result = outcome(mutant, past[mutant])
        with progress.lock:
            keep(mutant, result)
            progress.add(result)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for done in concurrent.futures.as_completed([pool.submit(one, mutant) for mutant in mutants]):
                done.result()
        finally:
            is_over.set()


class Progress:
    """Reports from time to time how many are done, and how long the rest will take."""

    def __init__(self, count: int, tell: Callable[[str], None]):
        self.lock = threading.Lock()
        self._count, self._tell = count, tell
        self._done = self._unnoticed = 0
        self._begin = self._told = time.monotonic()

    def add(self, result: str) -> None:
        now = time.monotonic()
        self._done += 1
        self._unnoticed += result in (NO_TEST, NOT_NOTICED)
        if now - self._told >= TELL_EVERY_SECONDS or self._done == self._count:
            self._told = now
            left = (now - self._begin) / self._done * (self._count - self._done) / 60
            self._tell(f"{self._done:,} of {self._count:,} tried, {self._unnoticed} not detected, {left:.0f} min left")
