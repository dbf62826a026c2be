"""The copy of our crates that contains the mutants."""

import hashlib
import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / "mutants"
CACHE = ROOT / ".cache/mutants"
COPY = CACHE / "workspace"
SWITCH = "mutant-switch"
# What affects results besides the crates: the versions of their dependencies, and the code that
# makes the copy.
COMMON = ["Cargo.toml", "Cargo.lock", *(f"mutants/{part}" for part in ("harness", "nodes", "switch"))]


def crates_needed(packages: list[str]) -> list[str]:
    """Returns the packages, and our crates that they and their tests need."""
    needed, open_ones = set(), list(packages)
    while open_ones:
        crate = open_ones.pop()
        if crate in needed:
            continue
        needed.add(crate)
        manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            open_ones += [name for name in manifest.get(table, {}) if (ROOT / "crates" / name).is_dir()]
    return sorted(needed)


def sources(packages: list[str]) -> list[Path]:
    """Returns the paths, relative to the root, of all files that the copy needs."""
    folders = [f"crates/{crate}" for crate in crates_needed(packages)]
    paths = []
    for part in [*COMMON, *folders]:
        path = ROOT / part
        paths += [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sorted(path.relative_to(ROOT) for path in paths if "__pycache__" not in path.parts)


def digest(packages: list[str]) -> str:
    """Returns a digest that changes whenever results may change."""
    state = hashlib.sha256()
    for path in sources(packages):
        content = (ROOT / path).read_bytes()
        state.update(f"{path} {len(content)}\n".encode() + content)
    return state.hexdigest()


def write(packages: list[str], woven: dict[str, bytes]) -> None:
    """Makes the copy, with the given content for some files. Unchanged files are not touched, so
    that cargo sees what has changed."""
    wanted = {}
    for path in sources(packages):
        if path.parts[0] == "mutants":
            if path.parts[1] == "switch":
                wanted[Path("crates", SWITCH, *path.parts[2:])] = (ROOT / path).read_bytes()
        else:
            wanted[path] = woven.get(str(path)) or (ROOT / path).read_bytes()
    for package in packages:
        manifest = Path("crates", package, "Cargo.toml")
        wanted[manifest] = with_switch(wanted[manifest].decode()).encode()
    for old in [path for path in (COPY / "crates").rglob("*") if path.is_file()]:
        if old.relative_to(COPY) not in wanted:
            old.unlink()
    for path, content in wanted.items():
        _write_changed(COPY / path, content, is_lock=path.name == "Cargo.lock")


def with_switch(manifest: str) -> str:
    """Adds the crate `mutant-switch` to the dependencies of a package."""
    head = "[dependencies]\n"
    if f"\n{head}" not in manifest:
        raise ValueError("cannot add a dependency: the package has no table of dependencies")
    return manifest.replace(f"\n{head}", f'\n{head}{SWITCH} = {{ path = "../{SWITCH}" }}\n', 1)


def _write_changed(path: Path, content: bytes, is_lock: bool) -> None:
    # Cargo removes from the lockfile what the copy does not need, and this must not look like a
    # change.
    if path.exists() and (is_lock or path.read_bytes() == content):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def build_nodes_program() -> Path:
    """Builds the program that finds operators. Returns its path."""
    target = CACHE / "tool"
    command = ["cargo", "build", "--quiet", "--locked", "--manifest-path", HOME / "Cargo.toml", "-p", "mutant-nodes"]
    subprocess.run([*command, "--target-dir", target], env=dict(os.environ, CARGO_PROFILE_DEV_DEBUG="0"), check=True)
    return target / "debug/mutant-nodes"
