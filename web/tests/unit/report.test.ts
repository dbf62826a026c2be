import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ReportEngine } from "../../logs/report-engine.js";
import { noteOn, parseReport, unpacked } from "../../logs/report-file.js";
import { SUMMARY } from "./summary.js";

/** Returns a report as the program writes it, without compression. */
function reportOf(head: object, packed: number[] = []): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(head));
  const length = new Uint8Array(new Uint32Array([json.length]).buffer);
  return new Uint8Array([...length, ...json, ...packed]);
}

/** What the server sends has other names than what the page keeps. */
const { countries: _, ...WHOLE } = SUMMARY;

test("a report is read", () => {
  const report = parseReport(
    reportOf({ name: "a.log", seconds: 60, rounds_numbers: false, summary: WHOLE }, [7, 8]),
  );
  assert.equal(report.name, "a.log");
  assert.deepEqual(report.detail, { seconds: 60, values_max: null, rounds_numbers: false });
  assert.deepEqual(report.summary, SUMMARY);
  assert.deepEqual([...report.packed], [7, 8]);
  assert.equal(parseReport(reportOf({ name: "", summary: WHOLE })).detail, null);
});

test("a truncated report is refused", () => {
  const report = reportOf({ name: "a.log", seconds: 1, rounds_numbers: false, summary: WHOLE });
  for (const length of [0, 3, 4, 20, report.length - 1]) {
    assert.throws(() => parseReport(report.subarray(0, length)), /truncated/);
  }
});

test("the note says what filters cover", () => {
  assert.equal(noteOn(null), "");
  assert.match(
    noteOn({ seconds: 1, values_max: null, rounds_numbers: false }),
    /^Filters cover all requests/,
  );
  assert.match(
    noteOn({ seconds: 60, values_max: null, rounds_numbers: false }),
    /use times rounded down to minutes\. /,
  );
  const note = noteOn({ seconds: 3_600, values_max: 1_000, rounds_numbers: true });
  assert.match(
    note,
    /to hours, mean sizes, rounded durations and only the 1,000 most frequent values of each field/,
  );
});

test("content is decoded and decompressed", async () => {
  const stream = new Blob(["packed"]).stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = Buffer.from(await new Response(stream).arrayBuffer());
  const found = await unpacked(`\n${bytes.toString("base64")}\n`);
  assert.equal(new TextDecoder().decode(found), "packed");
});

test("the engine answers questions about a packed log", async () => {
  const program = new Uint8Array(await readFile("../.cache/report.wasm"));
  const packed = await readFile("../fuzz/seeds/log_pack/four_requests");
  const engine = await ReportEngine.open(program, packed, SUMMARY);
  const ask = (filters: string[]) =>
    engine.answer({ type: "query", seq: 7, query: { from: null, until: null, filters } });

  const answer = ask(["status >= 400"]);
  assert.ok(answer?.type === "figures");
  assert.deepEqual([answer.seq, answer.summary.requests, answer.summary.bytes_sent], [7, 2, 12]);
  assert.deepEqual(
    answer.summary.panels.path.top.map(({ value }) => value),
    ["/a", "/b"],
  );
  assert.deepEqual(
    answer.summary.bots.top.map(({ value }) => value),
    ["Googlebot"],
  );
  assert.equal(answer.summary.unparsed, SUMMARY.unparsed, "lines are those of the whole log");

  const refused = ask(["status = 5"]);
  assert.ok(refused?.type === "refused");
  assert.deepEqual(refused.at, { filter: 0, column: 8 });
  assert.equal(engine.answer({ type: "drop", seq: 7 }), undefined);
});

test("the engine refuses a damaged log", async () => {
  const program = new Uint8Array(await readFile("../.cache/report.wasm"));
  const packed = await readFile("../fuzz/seeds/log_pack/four_requests");
  const damaged = packed.subarray(0, packed.length - 1);
  await assert.rejects(ReportEngine.open(program, damaged, SUMMARY), /truncated/);
});
