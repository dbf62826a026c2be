import assert from "node:assert/strict";
import { test } from "node:test";
import { bucketAt, bucketName, coarsen, roundUp, stack } from "../../logs/stacking.js";
import { STATUS_CLASSES } from "../../logs/status-classes.js";
import { SUMMARY } from "./summary.js";

const { timeline } = SUMMARY;
const ALL = new Set(STATUS_CLASSES);

test("each class stands on the ones below it", () => {
  const { times, tops, peak } = stack(timeline, ALL);
  assert.deepEqual(times, [1_611_280_020, 1_611_280_080, 1_611_280_140, 1_611_280_200]);
  assert.deepEqual(tops.get("1xx"), [0, 0, 0, 0]);
  assert.deepEqual(tops.get("2xx"), [1, 0, 1, 1]);
  assert.deepEqual(tops.get("4xx"), [1, 1, 1, 1]);
  assert.deepEqual(tops.get("other"), [1, 1, 1, 1]);
  assert.equal(peak, 1);
});

test("a hidden class leaves no gap", () => {
  const { tops } = stack(timeline, new Set(["4xx"] as const));
  assert.deepEqual([...tops.keys()], ["4xx"]);
  assert.deepEqual(tops.get("4xx"), [0, 1, 0, 0]);
});

test("no requests make no columns", () => {
  const classes = { "1xx": [], "2xx": [], "3xx": [], "4xx": [], "5xx": [], other: [] };
  const { times, peak } = stack({ start: 0, bucket_seconds: 60, classes, outside: 0 }, ALL);
  assert.deepEqual(times, []);
  assert.equal(peak, 0);
});

test("enough columns leave the buckets as they are", () => {
  assert.equal(coarsen(timeline, 180, 3), timeline);
});

test("too few columns merge buckets without losing a request", () => {
  const coarse = coarsen(timeline, 180, 2);
  assert.equal(coarse.bucket_seconds, 120);
  // 01:47 is no multiple of two minutes: the first column begins at 01:46.
  assert.equal(coarse.start, 1_611_279_960);
  assert.deepEqual(coarse.classes["2xx"], [1, 1]);
  assert.deepEqual(coarse.classes["4xx"], [0, 1]);
});

test("columns are whole buckets, however long", () => {
  for (const bucket_seconds of [1, 7, 60, 480, 3_600, 86_400, 100_000]) {
    const counts = Array.from({ length: 1_000 }, () => 1);
    const classes = Object.fromEntries(STATUS_CLASSES.map((name) => [name, counts]));
    const fine = {
      ...timeline,
      start: 12_345,
      bucket_seconds,
      classes: classes as typeof timeline.classes,
    };
    const coarse = coarsen(fine, 1_000 * bucket_seconds, 50);
    assert.equal(coarse.bucket_seconds % bucket_seconds, 0);
    assert.ok(coarse.classes["2xx"].length <= 51, String(coarse.classes["2xx"].length));
    assert.equal(
      coarse.classes["5xx"].reduce((a, b) => a + b),
      1_000,
    );
  }
});

test("scales end at round numbers", () => {
  assert.deepEqual([0, 1, 7, 11, 99, 241, 1_001].map(roundUp), [1, 1, 8, 15, 100, 250, 1_500]);
});

test("a time is in the bucket that began last", () => {
  assert.equal(bucketAt(timeline, timeline.start - 1), null);
  assert.equal(bucketAt(timeline, timeline.start), 0);
  assert.equal(bucketAt(timeline, timeline.start + 119.9), 1);
  assert.equal(bucketAt(timeline, timeline.start + 180), null);
});

test("buckets are named by their length", () => {
  const names = [1, 15, 60, 300, 3_600, 7_200, 86_400, 90].map(bucketName);
  assert.deepEqual(names, [
    "second",
    "15 seconds",
    "minute",
    "5 minutes",
    "hour",
    "2 hours",
    "day",
    "90 seconds",
  ]);
});
