import assert from "node:assert/strict";
import { test } from "node:test";
import { Enquiry } from "../../logs/enquiry.js";
import type { Question } from "../../logs/protocol.js";
import type { Query } from "../../logs/query.js";
import { CHANGES, CHANGES_QUERY } from "./changes.js";
import { SUMMARY } from "./summary.js";

const query = (from: number): Query => ({ from, until: null, filters: [] });

function begin() {
  const asked: Question[] = [];
  const heard: string[] = [];
  const enquiry = new Enquiry((question) => asked.push(question), {
    figures: ({ lines }) => heard.push(`figures ${lines}`),
    comparison: ({ lines }) => heard.push(`comparison ${lines}`),
    rows: (total) => heard.push(`rows ${total}`),
    side: (topic, { type, seq }) => heard.push(`${topic} ${type} ${seq}`),
    searching: (topic, fraction) => heard.push(`${topic} ${fraction}`),
    refused: (topic, message, at) => heard.push(`${topic} ${message} ${at?.filter}`),
  });
  const answer = (seq: number, lines = 0) =>
    enquiry.handleAnswer({ type: "figures", seq, summary: { ...SUMMARY, lines } });
  return { asked, heard, enquiry, answer };
}

test("a newer query replaces the one that the server is working on", () => {
  const { asked, heard, enquiry, answer } = begin();
  for (const from of [1, 2, 3]) {
    enquiry.askForFigures("figures", query(from));
  }
  enquiry.handleAnswer({ type: "searching", seq: 3, fraction: 0.25 });
  assert.deepEqual(asked, [
    { type: "query", seq: 1, query: query(1) },
    { type: "drop", seq: 1 },
    { type: "query", seq: 2, query: query(2) },
    { type: "drop", seq: 2 },
    { type: "query", seq: 3, query: query(3) },
  ]);
  answer(1, 11);
  assert.deepEqual(heard, ["figures 0.25"], "a superseded answer is not shown");
  answer(3, 33);
  assert.deepEqual(heard, ["figures 0.25", "figures 33"]);
});

test("an answer is shown even if the same query is asked again", () => {
  const { heard, enquiry, answer } = begin();
  enquiry.askForFigures("figures", query(1));
  enquiry.askForFigures("figures", query(1));
  answer(1, 11);
  assert.deepEqual(heard, ["figures 11"]);
});

test("each topic has its turn", () => {
  const { asked, heard, enquiry, answer } = begin();
  enquiry.askForRows(query(1), { containing: "", offset: 0, limit: 25 });
  enquiry.askAside({ type: "changes", query: CHANGES_QUERY });
  enquiry.askForFigures("comparison", query(2));
  enquiry.askForFigures("figures", query(1));
  enquiry.handleAnswer({ type: "rows", seq: 1, total: 5, rows: [] });
  answer(2, 22);
  const at = { filter: 1, column: 7 };
  enquiry.handleAnswer({ type: "refused", seq: 3, code: "bad_filter", message: "why", at });
  enquiry.handleAnswer({ type: "changes", seq: 4, changes: CHANGES });
  assert.deepEqual(heard, ["rows 5", "figures 22", "comparison why 1", "changes changes 4"]);
  assert.deepEqual(asked[3], { type: "changes", seq: 4, query: CHANGES_QUERY });
  assert.equal(asked.length, 4);
});

test("the answer to a dropped query is not shown", () => {
  const { heard, enquiry, answer } = begin();
  enquiry.askForFigures("figures", query(1));
  enquiry.drop("figures");
  answer(1, 11);
  answer(7, 77);
  assert.deepEqual(heard, []);
});
