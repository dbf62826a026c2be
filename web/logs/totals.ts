// The tiles above the chart, and the line with the time span of the log.

import {
  grouped,
  humanBytes,
  humanDuration,
  percentage,
  utcClock,
  utcDay,
} from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import { changeOf } from "./change.js";
import { formatNote } from "./format-note.js";
import { spanOnAxis } from "./ranges.js";
import { DISTINCT_ERROR, type Summary } from "./summary.js";

interface Tile {
  id: string;
  /** The figure and its format. */
  figure(summary: Summary): number;
  write(figure: number, summary: Summary): string;
  note(summary: Summary): string;
}

const TILES: Tile[] = [
  {
    id: "requests",
    figure: ({ requests }) => requests,
    write: grouped,
    note: ({ lines }) => `in ${grouped(lines)} lines`,
  },
  {
    id: "errors",
    figure: errorsOf,
    write: grouped,
    note: ({ status_classes }) =>
      `${grouped(status_classes["4xx"] ?? 0)} × 4xx, ${grouped(status_classes["5xx"] ?? 0)} × 5xx`,
  },
  {
    id: "bytes-sent",
    figure: ({ bytes_sent }) => bytes_sent,
    write: humanBytes,
    note: ({ bytes_sent }) => `${grouped(bytes_sent)} bytes`,
  },
  {
    id: "unique-addresses",
    figure: ({ unique_addresses }) => unique_addresses,
    write: (figure, { unique_addresses_exact, is_part }) =>
      estimate(figure, unique_addresses_exact, is_part),
    note: (summary) => pathsNote(summary),
  },
  {
    id: "unparsed",
    figure: ({ unparsed }) => unparsed,
    write: grouped,
    note: unparsedNote,
  },
];

/** Shows the tiles; `whole` is the summary of everything read, which includes unparsed lines. */
export function showTotals(summary: Summary, compared: Summary | undefined, whole: Summary): void {
  for (const { id, figure, write, note } of TILES) {
    const shown = id === "unparsed" ? whole : summary;
    const value = figure(shown);
    setFigure(element(id), write(value, shown), value);
    setText(
      element(`${id}-note`),
      note(id === "requests" ? { ...shown, lines: whole.lines } : shown),
    );
    const before = compared === undefined || id === "unparsed" ? undefined : figure(compared);
    const change =
      before === undefined || compared === undefined
        ? ""
        : `was ${write(before, compared)}, ${changeOf(value, before)}`;
    setFigure(element(`${id}-change`), change, before ?? 0);
  }
  setText(element("span"), spanOf(summary));
  setText(element("format"), formatNote(whole));
}

export function clearTotals(): void {
  for (const { id } of TILES) {
    setText(element(id), "–");
    setText(element(`${id}-note`), "");
    setText(element(`${id}-change`), "");
    delete element(id).dataset["value"];
  }
  setText(element("span"), " ");
  setText(element("format"), "");
}

function errorsOf({ status_classes }: Summary): number {
  return (status_classes["4xx"] ?? 0) + (status_classes["5xx"] ?? 0);
}

/** Formats a count, marked if it is an estimate or, of a part of the log, a lower bound. */
export function estimate(count: number, exact: boolean, isPart: boolean): string {
  const mark = isPart ? "≥" : "≈";
  return exact ? grouped(count) : `${mark} ${grouped(count)}`;
}

function pathsNote(summary: Summary): string {
  const { unique_addresses_exact, unique_paths, paths_exact, is_part } = summary;
  const isExact = unique_addresses_exact && paths_exact;
  const error = isExact || is_part ? "" : `; ≈ is ${DISTINCT_ERROR}`;
  return `requested ${estimate(unique_paths, paths_exact, is_part)} paths${error}`;
}

function unparsedNote({ unparsed, lines, blank }: Summary): string {
  const share = unparsed === 0 ? "all lines parsed" : `${percentage(unparsed, lines)} of lines`;
  return blank === 0 ? share : `${share}, ${grouped(blank)} blank`;
}

/** Formats the time span of the requests that are on the time axis. */
export function spanOf(summary: Summary): string {
  const span = spanOnAxis(summary);
  if (span === null) {
    return "no requests yet";
  }
  const [first, last] = [span.from, span.until - 1];
  const [from, to] = [utcDay(first), utcDay(last)];
  const until = from === to ? "" : `${to} `;
  const clocks = `${from} ${utcClock(first, true)} – ${until}${utcClock(last, true)} UTC`;
  return `${clocks} (${humanDuration(last - first)})`;
}
