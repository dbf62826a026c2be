import assert from "node:assert/strict";
import { test } from "node:test";
import { NotUnderstood } from "../../logs/fields.js";
import { decades, readoutOf } from "../../logs/latency-series.js";
import { parseServerMessage } from "../../logs/protocol.js";
import { noteOf } from "../../logs/value-list.js";

const LATENCY = {
  ...{ count: 2, mean_us: 20, p50_us: 10, p90_us: 30, p99_us: 30, p999_us: 30, max_us: 30 },
};
const LIST = {
  ...{ requests: 9, distinct: 3, not_counted: 0, error: 0.01 },
  values: [
    { value: "/a", requests: 5, bytes: 50, errors: 1, latency: LATENCY },
    { value: "", requests: 4, bytes: 40, errors: 0, latency: null },
  ],
};
const SERIES = {
  ...{ start: 1_611_277_200, bucket_seconds: 60, counts: [2, 0], error: 0.01 },
  ...{ p50_us: [10, null], p90_us: [30_000, null], p99_us: [30, null], p999_us: [30, null] },
};

test("lists of values and latencies over time are parsed", () => {
  const values = { type: "values", seq: 1, list: LIST };
  const latency = { type: "latency", seq: 2, latency: SERIES };
  for (const message of [values, latency]) {
    assert.deepEqual(parseServerMessage(JSON.stringify(message)), message);
  }
  for (const message of [
    { ...values, list: { ...LIST, distinct: -1 } },
    { ...latency, latency: { ...SERIES, p50_us: [10] } },
    { ...latency, latency: { ...SERIES, p99_us: [10, "9"] } },
  ]) {
    assert.throws(() => parseServerMessage(JSON.stringify(message)), NotUnderstood);
  }
});

test("the note says how many values there are and how exact they are", () => {
  assert.equal(noteOf(LIST), "2 of 3 values · percentiles to ± 1.0 %");
  const untimed = { ...LIST, values: LIST.values.slice(1), distinct: 1, not_counted: 1 };
  assert.equal(noteOf(untimed), "1 of 1 value · 1 request with values that are not tracked");
});

test("a bucket is described with all percentiles", () => {
  assert.equal(
    readoutOf(SERIES, 0),
    "22 Jan 2021 01:00 UTC: p50 10 µs, p90 30.0 ms, p99 30 µs, p99.9 30 µs; 2 requests",
  );
  assert.equal(readoutOf(SERIES, 1), "22 Jan 2021 01:01 UTC: no requests");
});

test("the scale covers whole powers of ten", () => {
  assert.deepEqual(decades(12, 3_000), [10, 10_000]);
  assert.deepEqual(decades(0, 0), [1, 10]);
  assert.deepEqual(decades(null, null), [1, 10]);
});
