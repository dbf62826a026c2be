import assert from "node:assert/strict";
import { test } from "node:test";
import { timeLabels } from "../../shared/time-axis.js";
import { TimeSpan } from "../../logs/time-span.js";

test("the axis estimates the end from the part that was read", () => {
  assert.deepEqual(new TimeSpan().next(0, 100, 0.25), [0, 400]);
});

test("an estimate that hardly changes does not move the axis", () => {
  const span = new TimeSpan();
  span.next(0, 100, 0.25);
  assert.deepEqual(span.next(0, 130, 0.3), [0, 400]);
  assert.deepEqual(span.next(0, 200, 0.3), [0, 200 / 0.3]);
});

test("the axis never cuts off what was read", () => {
  const span = new TimeSpan();
  span.next(0, 100, 0.25);
  const [, end] = span.next(0, 401, 0.95);
  assert.ok(end >= 401);
});

test("requests before the first move the start", () => {
  const span = new TimeSpan();
  span.next(50, 100, 0.5);
  assert.deepEqual(span.next(0, 100, 0.5), [0, 200]);
});

test("a log that is not in chronological order is shown as far as it was read", () => {
  const span = new TimeSpan();
  assert.deepEqual(span.next(0, 100, 0.1), [0, 1_000]);
  assert.deepEqual(span.next(0, 100, 0.12), [0, 1_000]);
  assert.deepEqual(span.next(0, 100, 0.2), [0, 100]);
  assert.deepEqual(span.next(0, 200, 0.4), [0, 500]);
});

test("at the end the axis shows exactly the log", () => {
  const span = new TimeSpan();
  span.next(0, 100, 0.25);
  assert.deepEqual(span.next(0, 390, 1), [0, 390]);
});

test("the first mark and each new day carry the date", () => {
  const midnight = 1_611_273_600;
  assert.deepEqual(timeLabels([midnight - 3_600, midnight, midnight + 3_600], 3_600), [
    "23:00\n21 Jan 2021",
    "00:00\n22 Jan 2021",
    "01:00",
  ]);
  assert.deepEqual(timeLabels([midnight, midnight + 86_400], 86_400), [
    "22 Jan 2021",
    "23 Jan 2021",
  ]);
});
