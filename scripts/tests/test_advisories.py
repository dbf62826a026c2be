"""Tests that a version with an advisory is detected (scripts/advisories)."""

import os
import pathlib
import subprocess
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# `make deny` installs it before it runs this test.
CARGO_DENY = os.environ.get("CARGO_DENY", "cargo-deny")

MANIFEST = """
[package]
name = "probe"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
shlex = "={version}"
"""


def check(version):
    """Checks a crate that depends on the given version of shlex."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = pathlib.Path(folder, "Cargo.toml")
        manifest.write_text(MANIFEST.replace("{version}", version))
        pathlib.Path(folder, "lib.rs").touch()
        subprocess.run(["cargo", "generate-lockfile", "--quiet"], cwd=folder, check=True)
        return subprocess.run(
            [ROOT / "scripts/advisories", CARGO_DENY, manifest],
            capture_output=True,
            text=True,
            check=False,
        )


class Advisories(unittest.TestCase):
    def test_a_version_with_an_advisory_fails_and_the_patched_one_passes(self):
        bad = check("1.2.0")
        self.assertNotEqual(bad.returncode, 0)
        self.assertIn("RUSTSEC-2024-0006", bad.stderr)
        good = check("1.3.0")
        self.assertEqual(good.returncode, 0, good.stderr)

    def test_every_advisory_is_unique_and_has_the_required_fields(self):
        snapshot = tomllib.loads((ROOT / "advisories/snapshot.toml").read_text())
        names = [advisory["id"] for advisory in snapshot["advisory"]]
        self.assertEqual(len(names), len(set(names)))
        for advisory in snapshot["advisory"]:
            with self.subTest(advisory["id"]):
                self.assertRegex(advisory["id"], r"^RUSTSEC-20\d\d-\d{4}$")
                self.assertRegex(advisory["date"], r"^20\d\d-\d\d-\d\d$")
                self.assertIsInstance(advisory["patched"], list)
                self.assertIn(advisory.get("informational"), [None, "unmaintained", "unsound"])
                # The advisory for rsa is kept to prevent the crate from returning.
                self.assertTrue(advisory["patched"] or advisory["package"] == "rsa")


if __name__ == "__main__":
    unittest.main()
