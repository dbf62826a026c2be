"""Tests that clauses without an existing test are detected (scripts/check-clauses)."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("check_clauses", str(ROOT / "scripts/check-clauses"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_clauses", LOADER))
LOADER.exec_module(check)

HEAD = "Names are files in `crates/linerate-gateway/tests/it`.\n\n| clause | test |\n| --- | --- |\n"


def faults(tests):
    return list(check.faults(f"{HEAD}| a clause | {tests} |\n\nMore text.\n"))


class Clauses(unittest.TestCase):
    def test_a_test_that_exists_is_found(self):
        for tests in (
            "`refusals.rs`, `nothing_comes_before_connecting`",
            "`refusals.rs`, `names_of_channels_are_bounded`, `r08_subscriptions_are_bounded`",
            "`protocol/tests/replies.rs`, `ping_is_empty`; `native.rs`, `options_of_ours_are_taken`",
            "`sdk-tests/tests/pusher.test.mjs` with the published packages",
        ):
            self.assertEqual(faults(tests), [], tests)

    def test_a_test_that_does_not_exist_is_reported(self):
        for tests, missing in (
            ("`refusals.rs`, `nothing_comes`", "no test nothing_comes"),
            ("`refusals.rs`, `base64_url`", "no test base64_url"),
            ("`refusals.rs`; `native.rs`, `ping_is_empty`", "no test ping_is_empty"),
            ("`refusal.rs`, `nothing_comes_before_connecting`", "no file refusal.rs"),
            ("`sdk-tests/tests/missing.test.mjs`", "no file sdk-tests/tests/missing.test.mjs"),
            ("–", "no test is named"),
        ):
            self.assertEqual(faults(tests), [f"a clause: {missing}"], tests)

    def test_the_pages_have_tables(self):
        tables = [
            rows
            for page in sorted((ROOT / "docs/gateway").glob("*.md"))
            for _, rows in check.tables(page.read_text())
        ]
        self.assertGreaterEqual(len(tables), 5)
        self.assertTrue(all(len(rows) > 5 for rows in tables))


if __name__ == "__main__":
    unittest.main()
