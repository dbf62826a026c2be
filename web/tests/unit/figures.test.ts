import assert from "node:assert/strict";
import { test } from "node:test";
import { classOf, reasonOf } from "../../logs/status-classes.js";
import { commonest, theRest } from "../../logs/statuses.js";
import { atLeast, spanOf } from "../../logs/totals.js";
import { noteOf, reasonsLine } from "../../logs/unparsed-lines.js";
import { SUMMARY } from "./summary.js";

test("a count that stopped being exact says so", () => {
  assert.equal(atLeast(1_085, true), "1,085");
  assert.equal(atLeast(1_000_000, false), "≥ 1,000,000");
});

test("the span names the day once if it is one day", () => {
  assert.equal(spanOf(SUMMARY), "22 Jan 2021 01:47:05 – 01:49:05 UTC (2 min 0 s)");
  const nextDay = { ...SUMMARY, last_time: SUMMARY.first_time! + 86_400 };
  assert.equal(spanOf(nextDay), "22 Jan 2021 01:47:05 – 23 Jan 2021 01:47:05 UTC (1 d 0 h)");
  assert.equal(spanOf({ ...SUMMARY, first_time: null }), "no request yet");
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

test("the commonest stand in order of name, the rest is summed", () => {
  const counts = { "500": 1, "200": 90, "404": 7, "418": 2 };
  assert.deepEqual(commonest(counts, 2), [
    ["200", 90],
    ["404", 7],
  ]);
  assert.equal(theRest(counts, 2, "status", "statuses"), "and 2 more statuses with 3 requests");
  assert.equal(theRest(counts, 3, "status", "statuses"), "and 1 more status with 1 request");
  assert.equal(theRest(counts, 4, "status", "statuses"), "");
});

test("the note on unparsed lines says how many are shown", () => {
  assert.equal(noteOf(0, 0), "None so far.");
  assert.equal(noteOf(1, 1), "As it stands in the file.");
  assert.equal(noteOf(3, 3), "All 3, as they stand in the file.");
  assert.equal(noteOf(4_000, 5), "The first 5 of 4,000, as they stand in the file.");
});

test("reasons are written the commonest first", () => {
  assert.equal(
    reasonsLine({ "no status": 1, "no timestamp": 3_000 }),
    "3,000 × no timestamp · 1 × no status",
  );
  assert.equal(reasonsLine({}), "");
});
