import assert from "node:assert/strict";
import { test } from "node:test";
import { retryDelayMs } from "../../shared/backoff.js";

test("delays double and stop growing at fifteen seconds", () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 1_000].map((attempt) => retryDelayMs(attempt, () => 1));
  assert.deepEqual(delays, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
});

test("half of a delay is random", () => {
  assert.equal(
    retryDelayMs(2, () => 0),
    1_000,
  );
  assert.equal(
    retryDelayMs(2, () => 0.5),
    1_500,
  );
});
