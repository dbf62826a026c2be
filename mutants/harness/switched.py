"""Runs tests with a given mutant switched on."""

import os
import resource
import signal
import subprocess
import threading

from compiling import Program

# A mutant may allocate without end; no test needs this much.
MEMORY_BYTES_MAX = 4 << 30


def environment(switch: str) -> dict[str, str]:
    """Returns the environment. `mutant-switch` reads only its first variable.

    Tests with random input get the same input in each run, and do not write files with failures.
    """
    ours = {"LINERATE_MUTANT": switch, "PROPTEST_RNG_SEED": "1", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
    return ours | {name: value for name, value in os.environ.items() if name not in ours}


def run(program: Program, tests: list[str], switch: str, seconds_max: float) -> str | None:
    """Runs tests one after the other until one fails.

    `switch` is the number of a mutant, or the path of a file for the numbers of all that are
    reached. Returns None if all tests passed, or else the outcome: "failed" with the name of the
    test, "timeout", or "died" with the status.
    """
    process = subprocess.Popen(
        [program.path, "--exact", "--test-threads=1", *tests], cwd=program.folder, env=environment(switch),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace",
        process_group=0,
    )
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        _kill(process)

    timer = threading.Timer(seconds_max, end)
    timer.start()
    _limit_memory(process)
    failed = next((name for name in map(failed_test, process.stdout) if name), None)
    if failed:
        # Do not wait for the others.
        _kill(process)
    status = process.wait()
    timer.cancel()
    process.stdout.close()
    if failed:
        return f"failed {failed}"
    if is_late.is_set():
        return "timeout"
    return None if status == 0 else f"died {status}"


def failed_test(line: str) -> str | None:
    """Returns the name of the test if a line of the output reports a failure."""
    words = line.split()
    return words[1] if words[:1] == ["test"] and len(words) > 2 and words[-1] == "FAILED" else None


def _limit_memory(process: subprocess.Popen) -> None:
    try:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    except ProcessLookupError:
        pass  # It has already ended.


def _kill(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # It was about to end.
