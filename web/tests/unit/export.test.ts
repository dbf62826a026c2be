import assert from "node:assert/strict";
import { test } from "node:test";
import { figuresAsCsv, figuresAsJson, histogramAsSvg, timelineAsCsv } from "../../logs/export.js";
import { legendEntries } from "../../logs/downloads.js";
import { layersOf } from "../../logs/stacking.js";
import { WHOLE } from "../../logs/view.js";
import { SUMMARY } from "./summary.js";

test("the JSON contains the figures and the query", () => {
  const json = JSON.parse(figuresAsJson(SUMMARY, WHOLE, "access.log"));
  assert.equal(json.source, "access.log");
  assert.deepEqual(json.query, { from: null, until: null, filters: [] });
  assert.deepEqual(json.figures, JSON.parse(JSON.stringify(SUMMARY)));
});

test("the CSV has a line for each value, quoted where necessary", () => {
  assert.deepEqual(figuresAsCsv(SUMMARY).split("\r\n"), [
    "panel,value,requests,bytes,errors",
    "path,/,2,1200,0",
    'path,"/a""=,b",1,34,1',
    "path of 4xx,/a,1,34,1",
    "",
  ]);
});

test("no CSV field is a formula to a spreadsheet", () => {
  const top = [{ value: "=cmd()", requests: 1, bytes: 2, errors: 0 }];
  const panels = { ...SUMMARY.panels, agent: { ...SUMMARY.panels.agent, top } };
  assert.match(figuresAsCsv({ ...SUMMARY, panels }), /^agent,'=cmd\(\),1,2,0\r$/m);
});

test("the timeline has a line for each bucket", () => {
  const lines = timelineAsCsv(SUMMARY, layersOf(SUMMARY.timeline, "class")).split("\r\n");
  assert.equal(lines[0], "time,1xx,2xx,3xx,4xx,5xx,other,bytes");
  assert.equal(lines[1], "2021-01-22T01:47:00.000Z,0,1,0,0,0,0,1000");
  assert.equal(lines.length, 5);
});

test("the picture is well-formed and shows its title and layers", () => {
  const svg = histogramAsSvg({
    layers: layersOf(SUMMARY.timeline, "class"),
    axis: [1_611_280_020, 1_611_280_200],
    split: "class",
    before: [1, 2, 3],
    title: "Requests <per> minute",
    colour: (name) => (name === "--class-2xx" ? "#3b86bd" : "#000000"),
    marks: [{ at: 0.5, label: "01:48" }],
  });
  assert.match(svg, /^<svg [^>]*>\n/);
  assert.match(svg, /Requests &lt;per&gt; minute/);
  assert.match(svg, /<path d="M64\.00 [\d.]+H[\d.]+L[^"]*Z" fill="#3b86bd"\/>/);
  assert.match(svg, /stroke-dasharray/);
  assert.doesNotMatch(svg, /NaN|undefined/);
});

test("the legend of a picture continues in the next row where the width ends", () => {
  const layers = { start: 0, bucket_seconds: 60, buckets: 0, layers: [] as never[] };
  const names = ["2xx", "4xx", "5xx"].map((name) => ({ name, counts: [] }));
  const drawing = {
    ...{ layers: { ...layers, layers: names }, axis: [0, 1] as [number, number] },
    ...{ split: "class" as const, before: undefined, title: "", marks: [] },
    colour: (name: string) => name,
  };
  const entries = legendEntries(drawing, 120, () => 30);
  assert.deepEqual(
    entries.map(({ x, row, colour }) => [x, row, colour]),
    [
      [0, 0, "--class-2xx"],
      [65, 0, "--class-4xx"],
      [0, 1, "--class-5xx"],
    ],
  );
});
