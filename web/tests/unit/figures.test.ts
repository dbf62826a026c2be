import assert from "node:assert/strict";
import { test } from "node:test";
import { classOf, reasonOf } from "../../logs/status-classes.js";
import { changeOf, directionOf } from "../../logs/change.js";
import { reachOf } from "../../logs/figures-source.js";
import { duration, spread } from "../../logs/latency.js";
import { distinctNote } from "../../logs/panels.js";
import { estimate, spanOf } from "../../logs/totals.js";
import { noteOf, reasonsLine } from "../../logs/unparsed-lines.js";
import { SUMMARY } from "./summary.js";

test("an estimate is marked", () => {
  assert.equal(estimate(1_085, true, true), "1,085");
  assert.equal(estimate(1_000_000, false, false), "≈ 1,000,000");
  assert.equal(estimate(6, false, true), "≥ 6");
});

test("a panel shows the number of values and their error", () => {
  const { path, host } = SUMMARY.panels;
  assert.equal(distinctNote(path, true), "2 different");
  assert.equal(distinctNote(host, true).trim(), "");
  assert.equal(
    distinctNote({ ...path, distinct: 2_000_000, exact: false, error_max: 120, none: 5 }, false),
    "≈ 2,000,000 (± 0.8 %) different · counts at most 120 too low · 5 requests without",
  );
  assert.equal(distinctNote({ ...path, exact: false }, true), "≥ 2 different");
});

test("a change is written as a share, as a factor, or as a word", () => {
  assert.equal(changeOf(135, 100), "+35.0 %");
  assert.equal(changeOf(88, 100), "−12.0 %");
  assert.equal(changeOf(7, 7), "±0 %");
  assert.equal(changeOf(1_400, 100), "×14");
  assert.equal(changeOf(1, 0), "new");
  assert.equal(changeOf(0, 1), "gone");
  assert.equal(directionOf(1, 2), "down");
});

test("durations have three digits", () => {
  assert.equal(duration(850), "850 µs");
  assert.equal(duration(12_400), "12.4 ms");
  assert.equal(duration(310_000), "310 ms");
  assert.equal(duration(3_020_000), "3.02 s");
});

test("no request is lost when buckets are spread over columns", () => {
  const buckets = Array.from({ length: 200 }, (_, i): [number, number] => [10 * 1.07 ** i, i % 7]);
  const columns = spread(buckets, 48);
  assert.equal(columns.length, 48);
  const sum = (counts: number[]) => counts.reduce((a, b) => a + b, 0);
  assert.equal(sum(columns.map(({ count }) => count)), sum(buckets.map(([, count]) => count)));
  assert.deepEqual(spread([], 48), []);
  assert.equal(sum(spread([[5, 9]], 48).map(({ count }) => count)), 9);
});

test("the span names the day once if it is one day", () => {
  assert.equal(spanOf(SUMMARY), "22 Jan 2021 01:47:05 – 01:49:05 UTC (2 min 0 s)");
  const nextDay = { ...SUMMARY, last_time: SUMMARY.first_time! + 86_400 };
  assert.equal(spanOf(nextDay), "22 Jan 2021 01:47:05 – 23 Jan 2021 01:47:05 UTC (1 d 0 h)");
  assert.equal(spanOf({ ...SUMMARY, first_time: null }), "no requests yet");
  const { timeline } = SUMMARY;
  const stray = { ...SUMMARY, first_time: 5, timeline: { ...timeline, outside: 1 } };
  assert.match(spanOf(stray), /^22 Jan 2021 01:47:00 – /);
});

test("statuses have classes", () => {
  assert.equal(classOf("101"), "1xx");
  assert.equal(classOf("499"), "4xx");
  assert.equal(classOf("600"), "other");
  assert.equal(classOf("20"), "other");
  assert.equal(classOf("-"), "other");
  assert.equal(reasonOf("404"), "Not Found");
  assert.equal(reasonOf("299"), "");
});

test("the note on unparsed lines tells how many are shown", () => {
  assert.equal(noteOf(0, 0), "None so far.");
  assert.equal(noteOf(1, 1), "As in the file.");
  assert.equal(noteOf(3, 3), "All 3, as in the file.");
  assert.equal(noteOf(4_000, 5), "The first 5 of 4,000, as in the file.");
});

test("reasons are listed most frequent first", () => {
  assert.equal(
    reasonsLine({ "no status": 1, "no timestamp": 3_000 }),
    "3,000 × no timestamp · 1 × no status",
  );
  assert.equal(reasonsLine({}), "");
});

test("figures that cover only the newest requests are marked", () => {
  assert.equal(reachOf(SUMMARY), "");
  const filterable = { ...SUMMARY.filterable, requests: 4_096, since: SUMMARY.first_time };
  assert.equal(
    reachOf({ ...SUMMARY, filterable }),
    "the server keeps the newest 4,096 requests, from 22 Jan 2021 01:47 UTC on; these figures cover only those",
  );
});
