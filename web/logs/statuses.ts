// The statuses and methods of the requests.

import { grouped } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import { type BarRow, showBars } from "./bars.js";
import type { Summary } from "./protocol.js";
import { classOf, reasonOf } from "./status-classes.js";

const STATUSES_MAX = 12;
const STATUSES_MIN = 6;
const METHODS_MAX = 6;

export function showStatuses(summary: Summary): void {
  const rows = commonest(summary.statuses, STATUSES_MAX).map(([status, count]): BarRow => ({
    label: status,
    meaning: reasonOf(status),
    count,
    colour: `swatch-${classOf(status)}`,
  }));
  showBars(element("statuses"), rows, summary.requests, STATUSES_MIN);
  setText(element("statuses-more"), theRest(summary.statuses, STATUSES_MAX, "status", "statuses"));
  setText(element("methods"), methodsLine(summary.methods));
}

export function clearStatuses(): void {
  showBars(element("statuses"), [], 0, STATUSES_MIN);
  setText(element("statuses-more"), "");
  setText(element("methods"), " ");
}

/** Returns the `max` entries with the highest counts, in order of their names, which stays put. */
export function commonest(counts: Record<string, number>, max: number): [string, number][] {
  return byCount(counts)
    .slice(0, max)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Says what `commonest` left out; nothing if it left out nothing. */
export function theRest(
  counts: Record<string, number>,
  max: number,
  one: string,
  many: string,
): string {
  const rest = byCount(counts).slice(max);
  const sum = rest.reduce((total, [, count]) => total + count, 0);
  if (rest.length === 0) {
    return "";
  }
  const name = rest.length === 1 ? one : many;
  return `and ${grouped(rest.length)} more ${name} with ${grouped(sum)} ${sum === 1 ? "request" : "requests"}`;
}

function methodsLine(methods: Record<string, number>): string {
  const shown = byCount(methods)
    .slice(0, METHODS_MAX)
    .map(([name, count]) => `${name} ${grouped(count)}`);
  const rest = theRest(methods, METHODS_MAX, "method", "methods");
  return [...shown, ...(rest === "" ? [] : [rest])].join(" · ") || " ";
}

function byCount(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}
