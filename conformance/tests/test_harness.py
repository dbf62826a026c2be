"""Tests of the code that decides whether a run has passed."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "harness"))

import cases  # noqa: E402
import report  # noqa: E402
import runs  # noqa: E402


def listing():
    """Returns ids like those of the suite, in the right numbers."""
    return [f"{name}.{number}" for name, (_, count) in cases.SECTIONS.items() for number in range(1, count + 1)]


def result(case, behavior="OK", close="OK"):
    """Returns a result in the suite's format."""
    return {
        "id": case, "behavior": behavior, "behaviorClose": close, "duration": 1500, "received": [],
        "result": "the result.", "resultClose": "the close.", "remoteCloseCode": None,
    }


def verdict(behavior="OK", close="OK"):
    return report.Verdict("1.1.1", behavior, close, 0.0, "")


class Cases(unittest.TestCase):
    def test_the_sections_have_517_cases(self):
        self.assertEqual(cases.COUNT, 517)
        self.assertEqual(len(cases.known([*listing(), "8.1.1", "14.7.18"])), 517)

    def test_a_suite_that_lacks_a_case_is_refused(self):
        for absent in ("1.16", "6.1", "10.1"):
            with self.assertRaisesRegex(ValueError, f"section {cases.section(absent)} "):
                cases.known([case for case in listing() if case != absent])

    def test_a_selection_may_name_sections_and_cases_in_any_order(self):
        self.assertEqual(cases.select(listing(), "10,4.2,2.10, 2.1"), ["2.1", "2.10", "4.2", "10.1"])
        self.assertEqual(cases.select(listing(), "10.*"), ["10.1"])

    def test_a_selection_without_matches_is_refused(self):
        for wanted in ("8", "2.99", "14.1", "", "1,,2"):
            with self.assertRaises(ValueError):
                cases.select(listing(), wanted)


class Verdicts(unittest.TestCase):
    def test_only_ok_and_informational_pass_for_messages_and_the_close(self):
        self.assertTrue(verdict().passed)
        self.assertTrue(verdict("INFORMATIONAL", "INFORMATIONAL").passed)
        for behavior in ("NON-STRICT", "FAILED", "UNIMPLEMENTED", "NOT RUN"):
            self.assertFalse(verdict(behavior).passed, behavior)
        for close in ("FAILED", "UNCLEAN", "WRONG CODE", "FAILED BY CLIENT", "NOT RUN"):
            self.assertFalse(verdict("OK", close).passed, close)

    def test_the_tally_counts_every_case_once(self):
        verdicts = [verdict(), verdict("NON-STRICT"), verdict("OK", "UNCLEAN"), verdict("UNIMPLEMENTED")]
        self.assertEqual(report.tally([*verdicts, report.missing("2.1")]), (1, 3, 1))

    def test_the_table_shows_a_bad_close(self):
        total = report.table([verdict(), verdict("OK", "UNCLEAN"), verdict("NON-STRICT")])[-1].split()
        self.assertEqual(total, ["total", "3", "1", "0", "1", "1", "0", "0.0", "s"])

    def test_a_complaint_contains_the_case_and_the_reason(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "results"
            path.write_text(json.dumps(result("3.1", "FAILED", "UNCLEAN")) + "\n")
            [line] = report.complaints(report.read(path).values())
        self.assertIn("3.1: FAILED, close UNCLEAN: the result.", line)
        self.assertIn("the close.", line)

    def test_cases_that_were_not_run_share_a_complaint(self):
        lines = report.complaints([report.missing("1.1.1"), verdict(), report.missing("1.1.3")])
        self.assertEqual(lines, ["2 not run: 1.1.1, 1.1.3"])

    def test_a_truncated_result_does_not_count(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "results"
            path.write_text(json.dumps(result("1.1.1")) + "\n" + json.dumps(result("1.1.2"))[:20])
            self.assertEqual(list(report.read(path)), ["1.1.1"])


class Bridged(unittest.TestCase):
    def test_a_run_over_http2_is_separate(self):
        plain, bridged = runs.Run("server", False), runs.Run("server", False, bridged=True)
        self.assertEqual((plain.name, bridged.name), ("server-ws", "server-ws-http2"))

    def test_the_suite_talks_to_the_server_unless_there_is_a_bridge(self):
        run = runs.Run("server", True)
        with run._front("wss://127.0.0.1:1", None) as front:
            self.assertEqual((front.address(), front.still_runs()), ("wss://127.0.0.1:1", []))


class Repeats(unittest.TestCase):
    def execute(self, behaviors):
        """Executes one run of 3.2 and 3.1 in which attempt n gives `behaviors[n - 1]` to both
        cases."""
        attempts = []

        class Scripted(runs.Run):
            def _attempt(self, setup, ids, results, log):
                attempts.append(list(ids))
                behavior = behaviors[len(attempts) - 1]
                results.write_text("".join(json.dumps(result(case, behavior)) + "\n" for case in ids))
                return []

        with tempfile.TemporaryDirectory() as directory:
            setup = runs.Setup(None, None, None, Path(directory), 1.0)
            verdicts, _ = Scripted("server", False).execute(setup, ["3.1", "3.2"])
        return attempts, verdicts

    def test_only_racing_cases_are_repeated_and_only_until_they_pass(self):
        attempts, verdicts = self.execute(["NON-STRICT", "NON-STRICT", "OK"])
        self.assertEqual(attempts, [["3.1", "3.2"], ["3.2"], ["3.2"]])
        self.assertEqual([v.behavior for v in verdicts], ["NON-STRICT", "OK"])
        self.assertEqual(report.repeats(verdicts), ["run more than once: 3.2 (3)"])

    def test_a_racing_case_that_never_passes_is_judged_after_five_attempts(self):
        attempts, verdicts = self.execute(["NON-STRICT"] * 9)
        self.assertEqual(len(attempts), runs.ATTEMPTS_MAX)
        self.assertEqual([v.behavior for v in verdicts], ["NON-STRICT", "NON-STRICT"])


if __name__ == "__main__":
    unittest.main()
