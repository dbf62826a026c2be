import assert from "node:assert/strict";
import test from "node:test";
import { errorLanesAsSvg, marksOf } from "../../logs/error-lanes.js";

test("a single error among thousands has a mark that can be seen", () => {
  const counts = [0, 1, 0, 9_000];
  const marks = marksOf(counts);
  assert.deepEqual(
    marks.map(({ bucket }) => bucket),
    [1, 3],
  );
  assert.equal(marks[0]?.opacity, 0.45);
  assert.equal(marks[1]?.opacity, 1);
});

test("buckets without errors have no mark", () => {
  assert.deepEqual(marksOf([0, 0]), []);
  assert.deepEqual(marksOf([]), []);
});

test("the lanes are a part of the exported picture", () => {
  const layers = {
    ...{ start: 100, bucket_seconds: 10, buckets: 2 },
    layers: [
      { name: "2xx", counts: [7, 7] },
      { name: "5xx", counts: [0, 1] },
    ],
  };
  const lanes = errorLanesAsSvg(
    layers,
    (at) => at - 100,
    64,
    100,
    (name) => name,
  );
  assert.deepEqual(lanes, [
    '<text x="56" y="79" font-size="10" text-anchor="end">5xx</text>',
    '<rect x="10.00" y="72" width="10.00" height="7" fill="--class-5xx" opacity="0.45"/>',
  ]);
});
