"""Tests that the cost model agrees with `make million` (scripts/cost-model)."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("cost_model", str(ROOT / "scripts/cost-model"))
model = importlib.util.module_from_spec(importlib.util.spec_from_loader("cost_model", LOADER))
sys.modules["cost_model"] = model
LOADER.exec_module(model)

KNOWN = model.constants()


class CostModel(unittest.TestCase):
    def test_it_agrees_with_the_million_within_a_fifth(self):
        for what, computed, measured, _ in model.checks(KNOWN):
            self.assertLess(abs(computed / measured - 1), 0.2, what)

    def test_every_constant_was_found(self):
        for name, value in vars(KNOWN).items():
            self.assertGreater(value, 0, name)

    def test_a_channel_reaches_no_more_nodes_than_it_has_subscribers_or_than_there_are(self):
        self.assertAlmostEqual(model.reach(20, 1), 1)
        self.assertAlmostEqual(model.reach(20, 10), 8.03, 2)
        self.assertAlmostEqual(model.reach(20, 1_000_000), 20)

    def test_one_node_less_would_not_be_enough(self):
        machine = model.Machine()
        for name, load in model.EXAMPLES:
            found = model.smallest(load, machine, KNOWN)
            if found.nodes > 1:
                fewer = model.cost(load, found.nodes - 1, KNOWN)
                parts = (
                    fewer.cores / machine.cores,
                    fewer.memory_bytes / (machine.memory_gib * (1 << 30)),
                    fewer.network_bytes_s * 8 / (machine.network_gbit * 1e9),
                )
                self.assertGreater(max(parts) / fewer.nodes, model.USED, name)

    def test_batches_and_fewer_connections_cost_less(self):
        plain = model.cost(model.Load(1e5, 100, 1e3), 4, KNOWN)
        batched = model.cost(model.Load(1e5, 100, 1e3, batch_ms=200), 4, KNOWN)
        smaller = model.cost(model.Load(5e4, 100, 1e3), 4, KNOWN)
        self.assertLess(batched.cores, plain.cores)
        self.assertLess(smaller.memory_bytes, plain.memory_bytes)


if __name__ == "__main__":
    unittest.main()
