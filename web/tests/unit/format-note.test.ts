import assert from "node:assert/strict";
import { test } from "node:test";
import { formatNote } from "../../logs/format-note.js";
import { SUMMARY } from "./summary.js";

const FIT = { format: "common", lines: 1_256, requests: 86, certain: false, runner_up: null };

test("a certain or chosen format is only named", () => {
  assert.equal(formatNote({ ...SUMMARY, format: "" }), "");
  assert.equal(formatNote(SUMMARY), "Format: combined");
  const certain = { ...FIT, certain: true };
  assert.equal(formatNote({ ...SUMMARY, format_fit: certain }), "Format: combined");
});

test("an uncertain format says how many lines it reads, and the next best one", () => {
  assert.equal(
    formatNote({ ...SUMMARY, format_fit: FIT }),
    "Format: combined, uncertain: common reads 86 of the first 1,256 lines",
  );
  const other = { ...FIT, runner_up: { format: "json", requests: 85 } };
  assert.equal(
    formatNote({ ...SUMMARY, format_fit: other }),
    "Format: combined, uncertain: common reads 86 of the first 1,256 lines; json reads 85",
  );
});
