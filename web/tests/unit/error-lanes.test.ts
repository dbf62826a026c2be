import assert from "node:assert/strict";
import test from "node:test";
import { marksOf } from "../../logs/error-lanes.js";

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
