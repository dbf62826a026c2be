"""Tests of parsing the messages of cargo, cargo-mutants and test programs."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "harness"))

import compiling  # noqa: E402
import mutant  # noqa: E402
import recording  # noqa: E402
import switched  # noqa: E402
import workspace  # noqa: E402
from weave import Region  # noqa: E402


def error(message, *places, code=None):
    spans = [
        {"file_name": file, "byte_start": start, "byte_end": end, "is_primary": is_primary}
        for file, start, end, is_primary in places
    ]
    return {"message": message, "level": "error", "code": code and {"code": code}, "spans": spans}


class Errors(unittest.TestCase):
    regions = {"a.rs": [Region(10, 20, (1,), False), Region(5, 40, (1, 2), True)], "b.rs": [Region(0, 9, (3,), False)]}

    def refused(self, *errors):
        refused = compiling.Refused()
        for one in errors:
            compiling.blame(one, self.regions, refused)
        return refused

    def test_mutants_at_the_position_are_refused(self):
        refused = self.refused(error("mismatched types", ("a.rs", 12, 14, True), code="E0308"))
        self.assertEqual(refused, compiling.Refused({1}))

    def test_the_file_of_the_primary_span_takes_precedence(self):
        refused = self.refused(error("cannot add", ("b.rs", 1, 2, False), ("a.rs", 30, 31, True)))
        self.assertEqual(refused.mutants, {1, 2})

    def test_a_span_outside_of_our_files_is_ignored(self):
        refused = self.refused(error("cannot add", ("/rustc/core.rs", 1, 2, True), ("b.rs", 1, 2, False)))
        self.assertEqual(refused.mutants, {3})
        self.assertEqual(len(self.refused(error("no such crate"))), 0)

    def test_a_function_that_the_compiler_evaluates_stays_const(self):
        for message in (
            "cannot call non-const function `limits::default_of` in constants",
            "cannot call non-const associated function `Opcode::default_of` in constant functions",
            "cannot call non-const method `limits::<impl Size<u8>>::default_of` in statics",
        ):
            refused = self.refused(error(message, ("a.rs", 12, 14, True), code="E0015"))
            self.assertEqual(refused, compiling.Refused(set(), {"default_of"}), message)

    def test_a_switch_in_a_constant_is_attributed_to_its_mutant(self):
        message = "cannot call non-const function `mutant_switch::is_on` in constants"
        refused = self.refused(error(message, ("a.rs", 12, 14, True), code="E0015"))
        self.assertEqual(refused, compiling.Refused({1}))


class Messages(unittest.TestCase):
    def test_mutants_are_numbered_as_they_are_listed(self):
        entry = {
            "package": "a-crate", "file": "crates/a-crate/src/lib.rs", "genre": "FnValue", "replacement": "()", "name": "a name",
            "span": {"start": {"line": 3, "column": 5}}, "function": {"return_type": "-> bool"},
        }
        found = mutant.parse(json.dumps([entry, dict(entry, function=None)]))
        self.assertEqual([one.number for one in found], [0, 1])
        self.assertEqual([one.return_type for one in found], ["-> bool", ""])
        self.assertEqual((found[0].file, found[0].line, found[0].column), ("crates/a-crate/src/lib.rs", 3, 5))

    def test_only_executables_with_tests_are_programs(self):
        artifact = {
            "reason": "compiler-artifact", "profile": {"test": True}, "executable": "/target/it",
            "manifest_path": "/workspace/crates/a-crate/Cargo.toml",
        }
        self.assertEqual(compiling.test_program(artifact), compiling.Program("/target/it", "/workspace/crates/a-crate"))
        for other in ({"executable": None}, {"profile": {"test": False}}, {"reason": "build-finished"}):
            self.assertIsNone(compiling.test_program(artifact | other))

    def test_warnings_and_failure_notes_are_not_errors(self):
        for level, is_error in (("error", True), ("warning", False), ("failure-note", False)):
            self.assertEqual(compiling.is_error({"reason": "compiler-message", "message": {"level": level}}), is_error)

    def test_tests_are_listed_without_those_that_count_instructions(self):
        listing = "close::a_reason: test\nfeed_cost::text: test\ncodec: benchmark\nopen: test\n"
        self.assertEqual(recording.names(listing), ["close::a_reason", "open"])

    def test_the_output_names_the_test_that_failed(self):
        self.assertEqual(switched.failed_test("test close::a_reason ... FAILED\n"), "close::a_reason")
        self.assertEqual(switched.failed_test("test a_panic - should panic ... FAILED\n"), "a_panic")
        for line in ("test close::a_reason ... ok\n", "test result: ok. 1 passed\n", "failures:\n", "\n"):
            self.assertIsNone(switched.failed_test(line), line)

    def test_the_switch_is_the_first_variable_of_the_environment(self):
        self.assertEqual(next(iter(switched.environment("17").items())), ("LINERATE_MUTANT", "17"))

    def test_a_package_gets_the_switch_as_a_dependency(self):
        manifest = workspace.with_switch("[package]\nname = \"a\"\n\n[dependencies]\nbytes = \"1\"\n\n[dev-dependencies]\n")
        self.assertIn('[dependencies]\nmutant-switch = { path = "../mutant-switch" }\nbytes = "1"\n', manifest)
        self.assertEqual(manifest.count("mutant-switch ="), 1)
        with self.assertRaises(ValueError):
            workspace.with_switch("[package]\n\n[dev-dependencies]\n")


if __name__ == "__main__":
    unittest.main()
