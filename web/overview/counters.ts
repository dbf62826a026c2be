// The live counters that the server pushes over /counters once a second.

import { grouped, humanBytes, humanDuration } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";

const FIELDS = [
  "connections",
  "connections_total",
  "messages_received",
  "messages_sent",
  "bytes_received",
  "bytes_sent",
  "uploads",
  "uptime_seconds",
] as const;

/** The counters that are also shown per second. */
const RATES = ["messages_received", "messages_sent", "bytes_received", "bytes_sent"] as const;

type Field = (typeof FIELDS)[number];

export type Counters = Record<Field, number> & {
  version: string;
  /** The name of the broker. */
  broker: string;
  /** True if nothing arrives from it. */
  is_deaf: boolean;
};

/** Parses one push of the server; returns null if it is invalid. */
export function parseCounters(text: string): Counters | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) {
    return null;
  }
  const fields = value as Record<string, unknown>;
  const complete = FIELDS.every((name) => typeof fields[name] === "number");
  const described =
    typeof fields["version"] === "string" &&
    typeof fields["broker"] === "string" &&
    typeof fields["is_deaf"] === "boolean";
  return complete && described ? (value as Counters) : null;
}

/** Returns how much `field` grew per second between two pushes; 0 if the server restarted. */
export function perSecond(
  before: Counters,
  after: Counters,
  field: Field,
  seconds: number,
): number {
  return seconds > 0 ? Math.max(0, after[field] - before[field]) / seconds : 0;
}

/** Fills in the counters of the overview, and remembers the last push to show rates. */
export class CounterBoard {
  #last: { counters: Counters; atMs: number } | undefined;

  show(counters: Counters, atMs: number): void {
    for (const name of ["connections", "connections_total", "uploads"] as const) {
      setFigure(element(name), grouped(counters[name]), counters[name]);
    }
    for (const name of ["messages_received", "messages_sent"] as const) {
      setFigure(element(name), grouped(counters[name]), counters[name]);
    }
    for (const name of ["bytes_received", "bytes_sent"] as const) {
      setFigure(element(name), humanBytes(counters[name]), counters[name]);
      element(name).title = `${grouped(counters[name])} bytes`;
    }
    const uptime = humanDuration(counters.uptime_seconds);
    setFigure(element("uptime_seconds"), uptime, counters.uptime_seconds);
    setText(element("version"), `version ${counters.version}`);
    this.#showRates(counters, atMs);
    this.#last = { counters, atMs };
  }

  /** Forgets the last push, so that a gap in the connection does not distort a rate. */
  pause(): void {
    this.#last = undefined;
    for (const name of RATES) {
      setText(element(`${name}_rate`), "\u00a0");
    }
  }

  #showRates(counters: Counters, atMs: number): void {
    const last = this.#last;
    if (last === undefined) {
      return;
    }
    const seconds = (atMs - last.atMs) / 1_000;
    for (const name of RATES) {
      const rate = perSecond(last.counters, counters, name, seconds);
      const amount = name.startsWith("bytes") ? humanBytes(rate) : grouped(rate);
      setText(element(`${name}_rate`), `${amount} per second`);
    }
  }
}
