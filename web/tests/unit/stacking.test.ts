import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bucketAt,
  bucketName,
  coarsen,
  type Layers,
  LAYERS_MAX,
  layersOf,
  OTHER_LAYER,
  project,
  roundUp,
  stack,
  total,
  totals,
} from "../../logs/stacking.js";
import { SUMMARY } from "./summary.js";

const { timeline } = SUMMARY;
const LAYERS = layersOf(timeline, "class");
const ALL = () => true;

/** The counts of one layer. */
function countsOf({ layers }: Layers, name: string): number[] {
  return layers.find((layer) => layer.name === name)?.counts ?? [];
}

test("each class is stacked on the ones below it", () => {
  const { times, tops, peak } = stack(LAYERS, ALL);
  assert.deepEqual(times, [1_611_280_020, 1_611_280_080, 1_611_280_140, 1_611_280_200]);
  assert.deepEqual(tops.get("1xx"), [0, 0, 0, 0]);
  assert.deepEqual(tops.get("2xx"), [1, 0, 1, 1]);
  assert.deepEqual(tops.get("4xx"), [1, 1, 1, 1]);
  assert.deepEqual(tops.get("other"), [1, 1, 1, 1]);
  assert.equal(peak, 1);
});

test("a hidden class leaves no gap", () => {
  const { tops } = stack(LAYERS, (name) => name === "4xx");
  assert.deepEqual([...tops.keys()], ["4xx"]);
  assert.deepEqual(tops.get("4xx"), [0, 1, 0, 0]);
});

test("without requests there are no columns", () => {
  const nothing = { start: 0, bucket_seconds: 60, buckets: 0, layers: [] };
  const { times, peak } = stack(nothing, ALL);
  assert.deepEqual(times, []);
  assert.equal(peak, 0);
});

test("enough columns leave the buckets as they are", () => {
  assert.equal(coarsen(LAYERS, 180, 3), LAYERS);
});

test("too few columns merge buckets without losing a request", () => {
  const coarse = coarsen(LAYERS, 180, 2);
  assert.equal(coarse.bucket_seconds, 120);
  // 01:47 is not a multiple of two minutes: the first column begins at 01:46.
  assert.equal(coarse.start, 1_611_279_960);
  assert.deepEqual(countsOf(coarse, "2xx"), [1, 1]);
  assert.deepEqual(countsOf(coarse, "4xx"), [0, 1]);
});

test("columns are whole buckets, however long", () => {
  for (const bucket_seconds of [1, 7, 60, 480, 3_600, 86_400, 100_000]) {
    const layers = [{ name: "5xx", counts: Array.from({ length: 1_000 }, () => 1) }];
    const fine = { start: 12_345, bucket_seconds, buckets: 1_000, layers };
    const coarse = coarsen(fine, 1_000 * bucket_seconds, 50);
    assert.equal(coarse.bucket_seconds % bucket_seconds, 0);
    assert.ok(coarse.buckets <= 51, String(coarse.buckets));
    assert.equal(total(countsOf(coarse, "5xx")), 1_000);
  }
});

test("hosts beyond the colours share the last layer", () => {
  const by_host = Object.fromEntries(
    Array.from({ length: 14 }, (_, i) => [`host-${i}`, [i + 1, 0, 0]]),
  );
  const { layers } = layersOf({ ...timeline, by_host }, "host");
  assert.equal(layers.length, LAYERS_MAX);
  assert.equal(layers[0]?.name, "host-13");
  assert.deepEqual(layers.at(-1), { name: OTHER_LAYER, counts: [21, 0, 0] });
});

test("another range is projected onto the buckets of this one without loss", () => {
  const onto = { start: 600, bucket_seconds: 60, buckets: 3, layers: [] };
  const other = {
    start: 0,
    bucket_seconds: 90,
    buckets: 2,
    layers: [{ name: "x", counts: [9, 6] }],
  };
  assert.deepEqual(project(other, 600, onto), [6, 5, 4]);
  assert.deepEqual(project(other, 6_000, onto), [0, 0, 0]);
  assert.deepEqual(totals(LAYERS), [1, 1, 1]);
});

test("scales end at round numbers", () => {
  assert.deepEqual([0, 1, 7, 11, 99, 241, 1_001].map(roundUp), [1, 1, 8, 15, 100, 250, 1_500]);
});

test("a time is in the bucket that began last", () => {
  assert.equal(bucketAt(LAYERS, timeline.start - 1), null);
  assert.equal(bucketAt(LAYERS, timeline.start), 0);
  assert.equal(bucketAt(LAYERS, timeline.start + 119.9), 1);
  assert.equal(bucketAt(LAYERS, timeline.start + 180), null);
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
