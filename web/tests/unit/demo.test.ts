import assert from "node:assert/strict";
import { test } from "node:test";
import { demoMessage, describe, latencyOf } from "../../overview/demo-message.js";
import { DemoWindow } from "../../overview/demo-window.js";

test("a window has rates, the mean batch and the median latency", () => {
  const window = new DemoWindow();
  window.add(3, [4, 1, 9]);
  window.add(1, [2]);
  assert.deepEqual(window.take(2), { perSecond: 2, batchSize: 2, latencyMs: 2 });
  assert.deepEqual(window.take(2), { perSecond: 0, batchSize: null, latencyMs: null });
});

test("only a page's own messages have a latency", () => {
  const message = demoMessage(7, "p1", 100, "hello");
  assert.equal(latencyOf(message, "p1", 130), 30);
  for (const other of [demoMessage(7, "p2", 100), null, 7, "p1", [], { page: "p1" }]) {
    assert.equal(latencyOf(other, "p1", 130), undefined);
  }
});

test("messages of the demo are described, and others are shown unchanged", () => {
  assert.equal(describe(demoMessage(7, "p", 1, "hello"), ""), "#7 c hello");
  assert.equal(describe({ a: 1 }, '{"a":1}'), '{"a":1}');
  assert.equal(describe(null, "null"), "null");
});
