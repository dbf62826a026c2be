import assert from "node:assert/strict";
import { test } from "node:test";
import { timelineOf } from "../../admin/timeline.js";
import type { Change } from "../../admin/views.js";

test("without changes the link was always in its current state", () => {
  const { spans, marks } = timelineOf([], "up", 0, 100);
  assert.deepEqual(spans, [{ state: "up", from: 0, to: 1 }]);
  assert.deepEqual(marks, []);
});

test("changes divide the time, and the state before the first is unknown", () => {
  const gap: Change = {
    at_ms: 60,
    change: "gap",
    reason: "link_lost",
    lasted_ms: 20,
    channels: null,
  };
  const changes: Change[] = [
    gap,
    { at_ms: 60, change: "up" },
    { at_ms: 40, change: "deaf" },
    { at_ms: 10, change: "up" },
  ];
  const { spans, marks } = timelineOf(changes, "up", 0, 100);
  assert.deepEqual(spans, [
    { state: "up", from: 0.6, to: 1 },
    { state: "deaf", from: 0.4, to: 0.6 },
    { state: "up", from: 0.1, to: 0.4 },
  ]);
  assert.deepEqual(marks, [{ at: 0.6, change: gap }]);
});

test("the time before the shown range is cut off", () => {
  const changes: Change[] = [
    { at_ms: 150, change: "deaf" },
    { at_ms: 20, change: "gap", reason: "overflow", lasted_ms: 1, channels: 1 },
    { at_ms: 10, change: "up" },
  ];
  const { spans, marks } = timelineOf(changes, "deaf", 100, 200);
  assert.deepEqual(spans, [
    { state: "deaf", from: 0.5, to: 1 },
    { state: "up", from: 0, to: 0.5 },
  ]);
  assert.deepEqual(marks, []);
});
