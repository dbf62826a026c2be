import assert from "node:assert/strict";
import { test } from "node:test";
import { type Counters, parseCounters, perSecond } from "../../overview/counters.js";

const COUNTERS: Counters = {
  connections: 2,
  connections_total: 9,
  messages_received: 100,
  messages_sent: 90,
  bytes_received: 5_000,
  bytes_sent: 4_000,
  uploads: 1,
  uptime_seconds: 61,
  version: "0.1.0",
  broker: "redis",
  is_deaf: false,
};

test("a push is parsed", () => {
  assert.deepEqual(parseCounters(JSON.stringify(COUNTERS)), COUNTERS);
});

test("a push without a counter is refused", () => {
  for (const name of Object.keys(COUNTERS)) {
    assert.equal(parseCounters(JSON.stringify({ ...COUNTERS, [name]: undefined })), null, name);
  }
});

test("a push that is not an object is refused", () => {
  for (const text of ["", "null", "7", "[]", '"live"', "{"]) {
    assert.equal(parseCounters(text), null, text);
  }
});

test("rates are per second", () => {
  const later = { ...COUNTERS, messages_received: 150 };
  assert.equal(perSecond(COUNTERS, later, "messages_received", 2), 25);
});

test("a restarted server does not yield a negative rate", () => {
  const restarted = { ...COUNTERS, messages_received: 3 };
  assert.equal(perSecond(COUNTERS, restarted, "messages_received", 1), 0);
  assert.equal(perSecond(COUNTERS, COUNTERS, "messages_received", 0), 0);
});
