import assert from "node:assert/strict";
import { test } from "node:test";
import { Series } from "../../admin/series.js";
import type { SeriesView } from "../../admin/views.js";

/** Returns points at these seconds; by default, the number of clients is the second. */
function view(seconds: number[], clients = seconds, deaf: number[] = []): SeriesView {
  const zeros = seconds.map(() => 0);
  return {
    step_s: 1,
    at_ms: seconds.map((second) => 1_000 * second),
    publications_per_s: zeros,
    publication_bytes_per_s: zeros,
    deliveries_per_s: zeros,
    delivery_bytes_per_s: zeros,
    delay_p99_ms: seconds.map(() => null),
    dropped: zeros,
    gaps: zeros,
    deaf_s: seconds.map((second) => (deaf.includes(second) ? 1 : 0)),
    clients,
    memory_bytes: zeros,
    resident_bytes: zeros,
  };
}

test("points are added, and the newest one is replaced", () => {
  const series = new Series(1, 10);
  assert.equal(series.afterMs, 0);
  series.add(view([1, 2], [5, 6]));
  assert.equal(series.afterMs, 2_000);
  series.add(view([2, 3], [7, 8]));
  const { times, columns } = series.columns(["clients", "delay_p99_ms"]);
  assert.deepEqual(times, [1, 2, 3]);
  assert.deepEqual(columns, [
    [5, 7, 8],
    [null, null, null],
  ]);
});

test("a reply without points changes nothing", () => {
  const series = new Series(1, 10);
  series.add(view([1]));
  series.add(view([]));
  assert.deepEqual(series.columns([]).times, [1]);
});

test("the oldest points are forgotten", () => {
  const series = new Series(1, 3);
  series.add(view([1, 2, 3]));
  series.add(view([3, 4, 5]));
  assert.deepEqual(series.columns(["clients"]).columns, [[3, 4, 5]]);
});

test("a hole interrupts the lines, and a skipped second does not", () => {
  const series = new Series(1, 10);
  series.add(view([1, 3, 60]));
  const { times, columns } = series.columns(["clients"]);
  assert.deepEqual(times, [1, 3, 4, 60]);
  assert.deepEqual(columns, [[1, 3, null, 60]]);
});

test("seconds without the broker are one outage while they follow each other", () => {
  const series = new Series(1, 10);
  series.add(view([1, 2, 3, 4, 5, 6], undefined, [2, 3, 6]));
  assert.deepEqual(series.outages(), [
    { from: 2, to: 4 },
    { from: 6, to: 7 },
  ]);
  series.clear();
  assert.deepEqual(series.outages(), []);
});
