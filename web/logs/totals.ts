// The four tiles over the tables, and the line about what the log spans.

import {
  grouped,
  humanBytes,
  humanDuration,
  percentage,
  utcClock,
  utcDay,
} from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import type { Summary } from "./protocol.js";

const FIGURES = ["requests", "unparsed", "bytes-sent", "unique-addresses"];
const NOTES = ["requests-note", "unparsed-note", "bytes-sent-exact", "unique-paths"];

export function showTotals(summary: Summary): void {
  const { requests, unparsed, bytes_sent, unique_addresses, unique_paths } = summary;
  setFigure(element("requests"), grouped(requests), requests);
  setText(element("requests-note"), `in ${grouped(summary.lines)} lines`);
  setFigure(element("unparsed"), grouped(unparsed), unparsed);
  setText(element("unparsed-note"), unparsedNote(summary));
  setFigure(element("bytes-sent"), humanBytes(bytes_sent), bytes_sent);
  setText(element("bytes-sent-exact"), `${grouped(bytes_sent)} bytes`);
  const addresses = atLeast(unique_addresses, summary.unique_addresses_exact);
  setFigure(element("unique-addresses"), addresses, unique_addresses);
  setFigure(
    element("unique-paths"),
    `${atLeast(unique_paths, summary.paths_exact)} paths`,
    unique_paths,
  );
  setText(element("span"), spanOf(summary));
}

export function clearTotals(): void {
  for (const id of [...FIGURES, ...NOTES]) {
    setText(element(id), FIGURES.includes(id) ? "–" : " ");
    delete element(id).dataset["value"];
  }
  setText(element("span"), " ");
}

/** Writes a count, or "≥" before it where the server stopped counting exactly. */
export function atLeast(count: number, exact: boolean): string {
  return exact ? grouped(count) : `≥ ${grouped(count)}`;
}

function unparsedNote({ unparsed, lines, blank }: Summary): string {
  const share =
    unparsed === 0 ? "every line is a request" : `${percentage(unparsed, lines)} of lines`;
  return blank === 0 ? share : `${share}, ${grouped(blank)} blank`;
}

/** Writes from when to when the requests were made. */
export function spanOf({ first_time, last_time }: Summary): string {
  if (first_time === null || last_time === null) {
    return "no request yet";
  }
  const [from, to] = [utcDay(first_time), utcDay(last_time)];
  const until = from === to ? "" : `${to} `;
  const clocks = `${from} ${utcClock(first_time, true)} – ${until}${utcClock(last_time, true)} UTC`;
  return `${clocks} (${humanDuration(last_time - first_time)})`;
}
