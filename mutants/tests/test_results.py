"""Tests of the selection of tests, the state and the report."""

import tempfile
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "harness"))

import compiling  # noqa: E402
import mutant  # noqa: E402
import report  # noqa: E402
import trying  # noqa: E402
from recording import Test  # noqa: E402
from state import InUse, State  # noqa: E402

UNIT, IT = compiling.Program("/unit", "/a"), compiling.Program("/it", "/a")


def test(program, name, seconds, mutants=()):
    return Test(program, name, seconds, True, list(mutants))


class Steps(unittest.TestCase):
    def test_short_tests_share_a_process_and_long_ones_come_last(self):
        tests = [test(IT, "long", 3.0), test(UNIT, "b", 0.02), test(IT, "c", 0.03), test(UNIT, "a", 0.01), test(UNIT, "d", 0.5)]
        steps = trying.steps(tests)
        self.assertEqual([(step.program, step.tests) for step in steps], [
            (UNIT, ["a", "b"]), (IT, ["c"]), (UNIT, ["d"]), (IT, ["long"]),
        ])
        self.assertAlmostEqual(steps[0].seconds_max, 15.3)
        self.assertAlmostEqual(steps[-1].seconds_max, 45)

    def test_a_mutant_that_no_test_reaches_is_not_run(self):
        self.assertEqual(trying.outcome(1, []), trying.NO_TEST)


class Remembering(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def open(self, digest="digest"):
        state = State(self.folder, digest)
        self.addCleanup(state.close)
        return state

    def test_stored_results_are_restored(self):
        state = self.open()
        program = compiling.Program(sys.executable, "/a")
        built = compiling.Built([program], [1, 2], {3: "a reason"})
        refused, tests = compiling.Refused({3}, {"f"}), [test(program, "a", 0.25, [1, 2])]
        state.keep_built(built)
        state.keep_refused(refused)
        state.keep_tests(tests)
        state.keep_outcome(1, "failed a")
        state.keep_outcome(2, trying.NOT_NOTICED)
        state.close()
        state = self.open()
        self.assertEqual((state.built(), state.refused(), state.tests()), (built, refused, tests))
        self.assertEqual(state.outcomes(), {1: "failed a", 2: trying.NOT_NOTICED})

    def test_results_for_other_sources_are_removed(self):
        state = self.open()
        state.keep_listing("[]")
        state.keep_outcome(1, "timeout")
        state.close()
        state = self.open("another")
        self.assertEqual((state.outcomes(), state.built(), state.tests(), state.listing()), ({}, None, None, None))

    def test_an_incomplete_line_is_ignored(self):
        state = self.open()
        state.keep_outcome(1, "timeout")
        with (self.folder / "state/outcomes.tsv").open("a") as file:
            file.write("12\tnot not")
        state.close()
        state = self.open()
        state.keep_outcome(2, "timeout")
        self.assertEqual(state.outcomes(), {1: "timeout", 2: "timeout"})

    def test_missing_or_changing_programs_are_not_used(self):
        state = self.open()
        state.keep_built(compiling.Built([compiling.Program(str(self.folder / "gone"), "/a")], [], {}))
        self.assertIsNone(state.built())
        state.keep_built(compiling.Built([compiling.Program(sys.executable, "/a")], [], {}))
        state.forget_built()
        self.assertIsNone(state.built())

    def test_tests_of_replaced_programs_are_forgotten(self):
        state = self.open()
        program = compiling.Program(sys.executable, "/a")
        state.keep_tests([test(program, "a", 0.25)])
        state.keep_built(compiling.Built([program], [], {}))
        self.assertIsNone(state.tests())

    def test_two_runs_at_once_are_refused(self):
        self.open()
        with self.assertRaises(InUse):
            self.open()


class Figures(unittest.TestCase):
    mutants = [
        mutant.Mutant(number, package, "a.rs", 1, 1, "FnValue", "()", "", f"a.rs:{number}:1: replace")
        for number, package in enumerate(["one", "one", "one", "one", "two", "two", "two"])
    ]
    outcomes = {0: "failed a", 1: "timeout", 2: trying.NOT_NOTICED, 4: "died -6", 5: trying.NO_TEST}

    def test_mutants_that_are_left_out_or_untried_do_not_count(self):
        one, two = report.rows(self.mutants, {3: "a reason"}, self.outcomes)
        self.assertEqual(one, report.Row("one", 1, 3, 2, 1, 0))
        self.assertEqual(two, report.Row("two", 0, 2, 1, 0, 1))
        self.assertAlmostEqual(one.percent, 200 / 3)

    def test_undetected_mutants_are_listed(self):
        self.assertEqual(
            report.unnoticed(self.mutants, self.outcomes), ["a.rs:2:1: replace", "a.rs:5:1: replace (no test reaches it)"],
        )


if __name__ == "__main__":
    unittest.main()
