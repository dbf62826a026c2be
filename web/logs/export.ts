// The figures as JSON and CSV, and the histogram as SVG: text for other programs.

import { colourName } from "./colours.js";
import { errorLanesAsSvg } from "./error-lanes.js";
import { type Layers, type Split, stack } from "./stacking.js";
import { PANELS, type Summary } from "./summary.js";
import { queryOf, type View } from "./view.js";

/** Returns the figures, with the query that they answer, as JSON. */
export function figuresAsJson(summary: Summary, view: View, source: string): string {
  return `${JSON.stringify({ source, query: queryOf(view), figures: summary }, null, 2)}\n`;
}

/** Returns CSV (RFC 4180) with a line for each value of each panel. */
export function figuresAsCsv(summary: Summary): string {
  const lists = [
    ...PANELS.map((name) => [name, summary.panels[name].top] as const),
    ["bot", summary.bots.top] as const,
    ["browser", summary.browsers.top] as const,
    ["system", summary.systems.top] as const,
    ["country", summary.countries?.figures.top ?? []] as const,
    ["path of 4xx", summary.error_paths["4xx"]] as const,
    ["path of 5xx", summary.error_paths["5xx"]] as const,
  ];
  const rows = lists.flatMap(([panel, top]) =>
    top.map(({ value, requests, bytes, errors }) => [panel, value, requests, bytes, errors]),
  );
  return csv([["panel", "value", "requests", "bytes", "errors"], ...rows]);
}

/** Returns CSV with a line for each bucket of the timeline: its start, layers and bytes. */
export function timelineAsCsv(
  { timeline }: Summary,
  { layers, start, bucket_seconds }: Layers,
): string {
  const rows = timeline.classes["2xx"].map((_, i) => [
    new Date((start + i * bucket_seconds) * 1_000).toISOString(),
    ...layers.map(({ counts }) => counts[i] ?? 0),
    timeline.bytes[i] ?? 0,
  ]);
  return csv([["time", ...layers.map(({ name }) => name), "bytes"], ...rows]);
}

function csv(rows: (string | number)[][]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/**
 * Quotes a field if necessary. One that a spreadsheet would take for a formula gets a leading quote
 * mark.
 */
function field(value: string | number): string {
  if (typeof value === "number") {
    return String(value);
  }
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export interface Drawing {
  layers: Layers;
  axis: [number, number];
  split: Split;
  before: number[] | undefined;
  title: string;
  /** Returns the value of a custom property of the style sheet. */
  colour(name: string): string;
  /** The labels of the time axis, by their position as a share of the width. */
  marks: { at: number; label: string }[];
}

const WIDTH = 1_200;
const HEIGHT = 420;
const PLOT = { left: 64, top: 100, right: 1_176, bottom: 376 };

/** Returns the histogram as an SVG 1.1 image with title, legend and axes. */
export function histogramAsSvg(drawing: Drawing): string {
  const { layers, split, before, colour, title } = drawing;
  const { times, tops, peak } = stack(layers, () => true);
  const top = Math.max(1, peak, ...(before ?? []));
  const scale = scales(drawing.axis, top);
  const outlines = layers.layers
    .map(({ name }, place) => ({ name, place, edge: tops.get(name) ?? [] }))
    .filter(({ edge }) => edge.length > 0)
    .reverse()
    .map(
      ({ name, place, edge }) =>
        `<path d="${outline(times, edge, scale)}" fill="${colour(colourName(split, name, place))}"/>`,
    );
  const line =
    before === undefined
      ? ""
      : `<path d="${steps(times, before, scale)}" fill="none" stroke="${colour("--ink")}" stroke-dasharray="4 3"/>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13" fill="${colour("--ink-soft")}">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="${colour("--card")}"/>`,
    `<text x="24" y="34" font-size="18" font-weight="600" fill="${colour("--ink")}">${escaped(title)}</text>`,
    legend(drawing),
    ...gridLines(top, scale, colour("--line")),
    ...outlines,
    line,
    ...(split === "class"
      ? errorLanesAsSvg(layers, (at) => Number(scale.x(at)), PLOT.left, PLOT.top, colour)
      : []),
    ...drawing.marks.map(
      ({ at, label }) =>
        `<text x="${(PLOT.left + at * (PLOT.right - PLOT.left)).toFixed(1)}" y="${PLOT.bottom + 24}" text-anchor="middle">${escaped(label)}</text>`,
    ),
    "</svg>",
  ].join("\n");
}

interface Scales {
  x(at: number): string;
  y(count: number): string;
}

function scales([from, to]: [number, number], top: number): Scales {
  const { left, right, bottom } = PLOT;
  return {
    x: (at) => (left + ((right - left) * (at - from)) / (to - from)).toFixed(2),
    y: (count) => (bottom - ((bottom - PLOT.top) * count) / top).toFixed(2),
  };
}

function steps(times: number[], counts: number[], { x, y }: Scales): string {
  return counts
    .map((count, i) => {
      const [from, until] = [times[i] ?? 0, times[i + 1] ?? times[i] ?? 0];
      return `${i === 0 ? "M" : "L"}${x(from)} ${y(count)}H${x(until)}`;
    })
    .join("");
}

function outline(times: number[], edge: number[], scale: Scales): string {
  const { x } = scale;
  const body = steps(times, edge.slice(0, -1), scale);
  return `${body}V${PLOT.bottom}H${x(times[0] ?? 0)}Z`;
}

function gridLines(top: number, { y }: Scales, colour: string): string[] {
  return [0, 0.5, 1].map((share) => {
    const at = y(top * share);
    const label = Math.round(top * share).toLocaleString("en-US");
    return (
      `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at}" y2="${at}" stroke="${colour}"/>` +
      `<text x="${PLOT.left - 8}" y="${Number(at) + 4}" text-anchor="end">${label}</text>`
    );
  });
}

function legend({ layers, split, colour }: Drawing): string {
  let x = PLOT.left;
  return layers.layers
    .map(({ name }, place) => {
      const at = x;
      x += 40 + name.length * 8;
      const fill = colour(colourName(split, name, place));
      return `<rect x="${at}" y="49" width="11" height="11" rx="3" fill="${fill}"/><text x="${at + 17}" y="59">${escaped(name)}</text>`;
    })
    .join("");
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
