"""Results in files, from which the next run continues as long as the sources are the same."""

import dataclasses
import fcntl
import json
import shutil
from pathlib import Path

from compiling import Built, Program, Refused
from recording import Test


class InUse(Exception):
    """Another run is using the files."""


class State:
    def __init__(self, folder: Path, digest: str):
        """Opens the results for sources with this digest; results for other sources are removed."""
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise InUse from None
        self._folder = folder / "state"
        mark = self._folder / "digest"
        if not mark.exists() or mark.read_text() != digest:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
            mark.write_text(digest)
        self._end_last_line()

    def close(self) -> None:
        self._lock.close()

    def listing(self) -> str | None:
        path = self._folder / "listing.json"
        return path.read_text() if path.exists() else None

    def keep_listing(self, listing: str) -> None:
        (self._folder / "listing.json").write_text(listing)

    def refused(self) -> Refused:
        known = self._read("refused.json")
        return Refused(set(known["mutants"]), set(known["kept_const"])) if known else Refused()

    def keep_refused(self, refused: Refused) -> None:
        self._write("refused.json", {"mutants": sorted(refused.mutants), "kept_const": sorted(refused.kept_const)})

    def built(self) -> Built | None:
        """Returns the last build, if it still exists."""
        known = self._read("built.json")
        if not known:
            return None
        programs = [Program(**program) for program in known["programs"]]
        left_out = {int(mutant): reason for mutant, reason in known["left_out"].items()}
        is_there = all(Path(program.path).exists() for program in programs)
        return Built(programs, known["placed"], left_out) if is_there else None

    def keep_built(self, built: Built) -> None:
        (self._folder / "tests.json").unlink(missing_ok=True)
        self._write("built.json", dataclasses.asdict(built))

    def forget_built(self) -> None:
        """Records that the programs are about to change."""
        (self._folder / "built.json").unlink(missing_ok=True)

    def tests(self) -> list[Test] | None:
        """Returns the tests of the last build."""
        known = self._read("tests.json")
        return known and [Test(**dict(test, program=Program(**test["program"]))) for test in known]

    def keep_tests(self, tests: list[Test]) -> None:
        self._write("tests.json", [dataclasses.asdict(test) for test in tests])

    def outcomes(self) -> dict[int, str]:
        lines = self._outcomes.read_text().splitlines() if self._outcomes.exists() else []
        return {int(mutant): outcome for mutant, outcome in (line.split("\t") for line in lines)}

    def keep_outcome(self, mutant: int, outcome: str) -> None:
        with self._outcomes.open("a") as file:
            file.write(f"{mutant}\t{outcome}\n")

    @property
    def _outcomes(self) -> Path:
        return self._folder / "outcomes.tsv"

    def _end_last_line(self) -> None:
        """Removes an incomplete line left by a run that was killed."""
        if self._outcomes.exists():
            lines = self._outcomes.read_text().splitlines(keepends=True)
            if lines and not lines[-1].endswith("\n"):
                self._outcomes.write_text("".join(lines[:-1]))

    def _read(self, name: str):
        path = self._folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def _write(self, name: str, content) -> None:
        # Written completely or not at all, however the run ends.
        fresh = self._folder / f"{name}.new"
        fresh.write_text(json.dumps(content))
        fresh.replace(self._folder / name)
