import assert from "node:assert/strict";
import { test } from "node:test";
import { NotUnderstood } from "../../logs/fields.js";
import { parseServerMessage } from "../../logs/protocol.js";
import { CHANGES } from "./changes.js";
import { SUMMARY } from "./summary.js";

function snapshot(change: object): string {
  return JSON.stringify({ type: "snapshot", final: false, summary: { ...SUMMARY, ...change } });
}

test("each message of the server is parsed", () => {
  const ready = { type: "ready", id: "5a5a", window_bytes: 16_777_216, bytes: 0 };
  const files = { type: "files", files: ["access.log"], uploads: "allowed", kept_s: 600 };
  const refused = { type: "refused", seq: 7, code: "unsupported", message: "no" };
  const misplaced = { type: "refused", seq: 7, code: "bad_filter", message: "no" };
  assert.deepEqual(parseServerMessage(JSON.stringify({ ...misplaced, filter: 1, column: 9 })), {
    ...misplaced,
    at: { filter: 1, column: 9 },
  });
  const changes = { type: "changes", seq: 3, changes: CHANGES };
  for (const message of [ready, files, refused, changes]) {
    assert.deepEqual(parseServerMessage(JSON.stringify(message)), message);
  }
  assert.deepEqual(parseServerMessage('{"type":"ack","bytes":0}'), { type: "ack", bytes: 0 });
  assert.deepEqual(parseServerMessage('{"type":"error","code":"not_a_log","message":"no"}'), {
    type: "error",
    code: "not_a_log",
    message: "no",
  });
  assert.deepEqual(parseServerMessage(snapshot({})), {
    type: "snapshot",
    final: false,
    summary: SUMMARY,
  });
});

test("a log without requests has no times", () => {
  const none = { "1xx": [], "2xx": [], "3xx": [], "4xx": [], "5xx": [], other: [] };
  const timeline = {
    ...{ start: 0, bucket_seconds: 60, classes: none, outside: 0 },
    ...{ bytes: [], by_method: {}, by_host: {} },
  };
  const message = parseServerMessage(snapshot({ first_time: null, last_time: null, timeline }));
  assert.equal(message.type === "snapshot" && message.summary.first_time, null);
});

test("fields added by a later server are ignored", () => {
  assert.deepEqual(parseServerMessage('{"type":"ack","bytes":3,"new":true}'), {
    type: "ack",
    bytes: 3,
  });
});

test("an invalid message is not understood", () => {
  for (const text of [
    "",
    "null",
    "[]",
    "{}",
    '{"type":"hello"}',
    '{"type":"ack"}',
    '{"type":"ack","bytes":-1}',
    '{"type":"ack","bytes":"3"}',
    '{"type":"ready","id":"5a5a","window_bytes":null,"bytes":0}',
    '{"type":"ready","window_bytes":5}',
    '{"type":"files","files":[1]}',
    '{"type":"snapshot","final":true}',
    JSON.stringify({ type: "changes", seq: 3, changes: { ...CHANGES, difference: null } }),
    JSON.stringify({
      type: "changes",
      seq: 3,
      changes: { ...CHANGES, values: [{ ...CHANGES.values[0], field: "city" }] },
    }),
  ]) {
    assert.throws(() => parseServerMessage(text), NotUnderstood, text);
  }
});

test("a summary without a required field is not understood", () => {
  // Neither is a field of the message.
  const { countries: _, is_part: __, ...required } = SUMMARY;
  for (const name of Object.keys(required)) {
    assert.throws(() => parseServerMessage(snapshot({ [name]: undefined })), NotUnderstood, name);
  }
});

test("the answer to a query is marked as figures of a part", () => {
  const figures = parseServerMessage(JSON.stringify({ type: "figures", seq: 7, summary: SUMMARY }));
  assert.ok(figures.type === "figures" && figures.summary.is_part);
  const pushed = parseServerMessage(snapshot({}));
  assert.ok(pushed.type === "snapshot" && !pushed.summary.is_part);
});

test("countries are present if the server has a database", () => {
  const panels = { ...SUMMARY.panels, country: SUMMARY.panels.path };
  const country_names = { DE: "Germany" };
  const message = parseServerMessage(snapshot({ panels, country_names }));
  assert.deepEqual(message.type === "snapshot" && message.summary.countries, {
    figures: SUMMARY.panels.path,
    names: country_names,
  });
  for (const change of [
    { country_names },
    { panels, country_names: { DE: 1 } },
    { panels, country_names: null },
  ]) {
    assert.throws(() => parseServerMessage(snapshot(change)), NotUnderstood);
  }
});

test("a timeline of uneven classes is not understood", () => {
  const classes = { ...SUMMARY.timeline.classes, "5xx": [0] };
  const timeline = { ...SUMMARY.timeline, classes };
  assert.throws(() => parseServerMessage(snapshot({ timeline })), NotUnderstood);
});

test("counts and paths must contain numbers", () => {
  for (const change of [
    { statuses: { "200": "2" } },
    { top_paths: [["/", "2"]] },
    { top_paths: ["/"] },
    { unparsed_samples: [{ line: 1, reason: "x" }] },
    { timeline: { ...SUMMARY.timeline, bucket_seconds: 0 } },
  ]) {
    assert.throws(
      () => parseServerMessage(snapshot(change)),
      NotUnderstood,
      JSON.stringify(change),
    );
  }
});
