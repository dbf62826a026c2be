import assert from "node:assert/strict";
import { test } from "node:test";
import { Speed } from "../../logs/speed.js";

test("the speed is that of the last two seconds", () => {
  const speed = new Speed(0);
  speed.handleProgress(1_000, 1_000);
  assert.equal(speed.now(1_000), 1_000);
  for (let at = 1_500; at <= 6_000; at += 500) {
    speed.handleProgress(1_000 + (at - 1_000) * 10, at);
  }
  assert.equal(speed.now(6_000), 10_000);
  assert.equal(speed.overall(6_000), 51_000 / 6);
});

test("the time left follows from the speed", () => {
  const speed = new Speed(0);
  assert.equal(speed.secondsLeft(5_000, 0), null);
  speed.handleProgress(1_000, 1_000);
  assert.equal(speed.secondsLeft(5_000, 1_000), 5);
});

test("an upload without acknowledgements is stalled", () => {
  const speed = new Speed(0);
  speed.handleProgress(10, 1_000);
  assert.equal(speed.isStalled(5_000), false);
  assert.equal(speed.isStalled(5_001), true);
});
