// The figures of a log or a part of it, as the server sends them.

import { Fields, isCount, NotUnderstood } from "./fields.js";
import type { Field } from "./query.js";
import { STATUS_CLASSES, type StatusClass } from "./status-classes.js";

export interface Timeline {
  /** Unix seconds at which the first bucket begins. */
  start: number;
  bucket_seconds: number;
  /** Requests in each bucket; all classes and the other lists have the same number of buckets. */
  classes: Record<StatusClass, number[]>;
  /** Bytes sent in each bucket; empty from a server that does not count them. */
  bytes: number[];
  by_method: Record<string, number[]>;
  /** The hosts with the most requests, and all others combined. */
  by_host: Record<string, number[]>;
  /** Requests that are too far from the others in time to be shown with them. */
  outside: number;
}

export interface UnparsedLine {
  line: number;
  reason: string;
  text: string;
}

/** One value of a dimension. Errors are requests with a status from 400 to 599. */
export interface ValueCount {
  value: string;
  requests: number;
  bytes: number;
  errors: number;
}

/** The standard error of `distinct` where it is an estimate (HyperLogLog of 16,384 registers). */
export const DISTINCT_ERROR = "± 0.8 %";

/** The most frequent values of one dimension. */
export interface PanelFigures {
  distinct: number;
  /** True if `distinct` is exact; otherwise it is an estimate. */
  exact: boolean;
  /**
   * How many requests the count of a listed value may be too low by, and how many an unlisted value
   * may have.
   */
  error_max: number;
  /** Requests whose value appeared after the limit of values that can be told apart. */
  not_counted: number;
  /** Requests that have no value here. */
  none: number;
  top: ValueCount[];
}

export const PANELS = ["address", "agent", "host", "method", "path", "referrer", "status"] as const;

export type PanelName = (typeof PANELS)[number] & Field;

export interface Latency {
  count: number;
  p50_us: number;
  p90_us: number;
  p99_us: number;
  p999_us: number;
  max_us: number;
  /** The largest relative error of a percentile. */
  error: number;
  /** Upper bound in microseconds and requests, ascending. */
  buckets: [upperUs: number, count: number][];
}

/** A compressed file of which only the part before the damage was read. */
export interface Damage {
  file: string;
  /** `truncated` if it ends early, `corrupt` if its content is wrong. */
  reason: string;
  /** How many bytes of the file were read. */
  bytes: number;
  /** How many of its lines were counted. */
  lines: number;
}

export interface FirewallEntry {
  value: string;
  peak_per_minute: number;
  /** Unix seconds of the minute with the most requests. */
  peak_at: number;
  requests: number;
  errors: number;
}

export interface Summary {
  lines: number;
  requests: number;
  unparsed: number;
  blank: number;
  /** The number of unparsed lines by reason. */
  unparsed_reasons: Record<string, number>;
  unparsed_samples: UnparsedLine[];
  /** The files that could not be read to their end. */
  damaged: Damage[];
  bytes_read: number;
  bytes_sent: number;
  unique_addresses: number;
  /** True if `unique_addresses` is exact; otherwise it is an estimate. */
  unique_addresses_exact: boolean;
  unique_paths: number;
  paths_exact: boolean;
  statuses: Record<string, number>;
  methods: Record<string, number>;
  top_paths: [path: string, requests: number][];
  status_classes: Record<string, number>;
  /** Unix seconds; null if there are no requests. */
  first_time: number | null;
  last_time: number | null;
  timeline: Timeline;
  format: string;
  /** How well a detected format fits the first lines; null if it was chosen. */
  format_fit: FormatFit | null;
  approximate: boolean;
  /**
   * True for the answer to a query, in which the numbers of different values are lower bounds where
   * they are not exact, rather than estimates.
   */
  is_part: boolean;
  panels: Record<PanelName, PanelFigures>;
  /** The countries by ISO code, and their names; null if the server has no country database. */
  countries: { figures: PanelFigures; names: Record<string, string> } | null;
  bots: { requests: number; bytes: number; top: ValueCount[] };
  /** The browsers that agents name, and their operating systems; bots have neither. */
  browsers: PanelFigures;
  systems: PanelFigures;
  latency: Latency | null;
  error_paths: Record<"4xx" | "5xx", ValueCount[]>;
  firewall: {
    by_rate: FirewallEntry[];
    by_errors: FirewallEntry[];
    /** By how many requests the peaks may be too low; 0 if they are exact. */
    error_max: number;
  };
  /** The part of the log that can be filtered. */
  filterable: {
    requests: number;
    bytes: number;
    bytes_max: number;
    complete: boolean;
    /** Unix seconds from which on requests are kept, if older ones have been dropped. */
    since: number | null;
    /** Why the log cannot be filtered, or null if it can. */
    refusal: string | null;
  };
  /** The number of lines that are kept for reading. */
  rows_kept: { lines: number; bytes: number; bytes_max: number; complete: boolean };
}

/** How many of the first lines are requests in a format, and in the next best one. */
export interface FormatFit {
  format: string;
  lines: number;
  requests: number;
  certain: boolean;
  runner_up: { format: string; requests: number } | null;
}

/** Throws `NotUnderstood` if a field is missing or has the wrong type. */
export function parseSummary(summary: Fields): Summary {
  return {
    ...parseTotals(summary),
    timeline: parseTimeline(summary.object("timeline")),
    format: summary.string("format"),
    format_fit: parseFit(summary.objectOrNull("format_fit")),
    approximate: summary.flag("approximate"),
    is_part: false,
    panels: parsePanels(summary.object("panels")),
    countries: parseCountries(summary),
    bots: parseBots(summary.object("bots")),
    browsers: parsePanel(summary.object("browsers")),
    systems: parsePanel(summary.object("systems")),
    latency: parseLatency(summary.objectOrNull("latency")),
    error_paths: {
      "4xx": summary.object("error_paths").objects("4xx").map(parseValueCount),
      "5xx": summary.object("error_paths").objects("5xx").map(parseValueCount),
    },
    firewall: {
      by_rate: summary.object("firewall").objects("by_rate").map(parseFirewallEntry),
      by_errors: summary.object("firewall").objects("by_errors").map(parseFirewallEntry),
      error_max: summary.object("firewall").count("error_max"),
    },
    filterable: {
      requests: summary.object("filterable").count("requests"),
      since: summary.object("filterable").time("since"),
      refusal: summary.object("filterable").stringOrNull("refusal"),
      ...kept(summary.object("filterable")),
    },
    rows_kept: {
      lines: summary.object("rows_kept").count("lines"),
      ...kept(summary.object("rows_kept")),
    },
  };
}

function parseTotals(summary: Fields) {
  return {
    lines: summary.count("lines"),
    requests: summary.count("requests"),
    unparsed: summary.count("unparsed"),
    blank: summary.count("blank"),
    unparsed_reasons: summary.counts("unparsed_reasons"),
    unparsed_samples: summary.objects("unparsed_samples").map((sample) => ({
      line: sample.count("line"),
      reason: sample.string("reason"),
      text: sample.string("text"),
    })),
    damaged: summary.objects("damaged").map((it) => ({
      file: it.string("file"),
      reason: it.string("reason"),
      bytes: it.count("bytes"),
      lines: it.count("lines"),
    })),
    bytes_read: summary.count("bytes_read"),
    bytes_sent: summary.count("bytes_sent"),
    unique_addresses: summary.count("unique_addresses"),
    unique_addresses_exact: summary.flag("unique_addresses_exact"),
    unique_paths: summary.count("unique_paths"),
    paths_exact: summary.flag("paths_exact"),
    statuses: summary.counts("statuses"),
    methods: summary.counts("methods"),
    top_paths: summary.list("top_paths").map(parsePathCount),
    status_classes: summary.counts("status_classes"),
    first_time: summary.time("first_time"),
    last_time: summary.time("last_time"),
  };
}

function parsePathCount(entry: unknown): [string, number] {
  if (!Array.isArray(entry) || typeof entry[0] !== "string" || !isCount(entry[1])) {
    throw new NotUnderstood("top_paths contains something other than [path, count]");
  }
  return [entry[0], entry[1]];
}

function parseFit(fit: Fields | null): FormatFit | null {
  if (fit === null) {
    return null;
  }
  const other = fit.objectOrNull("runner_up");
  return {
    format: fit.string("format"),
    lines: fit.count("lines"),
    requests: fit.count("requests"),
    certain: fit.flag("certain"),
    runner_up:
      other === null ? null : { format: other.string("format"), requests: other.count("requests") },
  };
}

function parseTimeline(timeline: Fields): Timeline {
  const lists = timeline.object("classes");
  const buckets = lists.list("2xx").length;
  const bucket_seconds = timeline.count("bucket_seconds");
  if (buckets > 0 && bucket_seconds === 0) {
    throw new NotUnderstood("timeline has buckets of length 0");
  }
  return {
    start: timeline.time("start") ?? 0,
    bucket_seconds,
    classes: Object.fromEntries(
      STATUS_CLASSES.map((name) => [name, lists.countList(name, buckets)]),
    ) as Timeline["classes"],
    bytes: timeline.countList("bytes", timeline.list("bytes").length === 0 ? 0 : buckets),
    by_method: timeline.countLists("by_method", buckets),
    by_host: timeline.countLists("by_host", buckets),
    outside: timeline.count("outside"),
  };
}

function parsePanels(panels: Fields): Summary["panels"] {
  return Object.fromEntries(
    PANELS.map((name) => [name, parsePanel(panels.object(name))]),
  ) as Summary["panels"];
}

function parsePanel(panel: Fields): PanelFigures {
  return {
    distinct: panel.count("distinct"),
    exact: panel.flag("exact"),
    error_max: panel.count("error_max"),
    not_counted: panel.count("not_counted"),
    none: panel.count("none"),
    top: panel.objects("top").map(parseValueCount),
  };
}

function parseCountries(summary: Fields): Summary["countries"] {
  if (!summary.has("country_names")) {
    return null;
  }
  return {
    figures: parsePanel(summary.object("panels").object("country")),
    names: summary.texts("country_names"),
  };
}

function parseBots(bots: Fields): Summary["bots"] {
  return {
    requests: bots.count("requests"),
    bytes: bots.count("bytes"),
    top: bots.objects("top").map(parseValueCount),
  };
}

function parseValueCount(entry: Fields): ValueCount {
  return {
    value: entry.string("value"),
    requests: entry.count("requests"),
    bytes: entry.count("bytes"),
    errors: entry.count("errors"),
  };
}

function parseLatency(latency: Fields | null): Latency | null {
  if (latency === null) {
    return null;
  }
  return {
    count: latency.count("count"),
    p50_us: latency.count("p50_us"),
    p90_us: latency.count("p90_us"),
    p99_us: latency.count("p99_us"),
    p999_us: latency.count("p999_us"),
    max_us: latency.count("max_us"),
    error: latency.count("error"),
    buckets: latency.list("buckets").map(parseBucket),
  };
}

function parseBucket(entry: unknown): [number, number] {
  if (!Array.isArray(entry) || !isCount(entry[0]) || !isCount(entry[1])) {
    throw new NotUnderstood("latency has a bucket that is not [bound, count]");
  }
  return [entry[0], entry[1]];
}

function parseFirewallEntry(entry: Fields): FirewallEntry {
  return {
    value: entry.string("value"),
    peak_per_minute: entry.count("peak_per_minute"),
    peak_at: entry.time("peak_at") ?? 0,
    requests: entry.count("requests"),
    errors: entry.count("errors"),
  };
}

function kept(fields: Fields): { bytes: number; bytes_max: number; complete: boolean } {
  return {
    bytes: fields.count("bytes"),
    bytes_max: fields.count("bytes_max"),
    complete: fields.flag("complete"),
  };
}
