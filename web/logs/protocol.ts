// The messages of subprotocol linerate.logs.v1, read strictly: what the server pushes during an upload.

import { STATUS_CLASSES, type StatusClass } from "./status-classes.js";

export const SUBPROTOCOL = "linerate.logs.v1";

export interface Timeline {
  /** Unix seconds at which the first bucket begins. */
  start: number;
  bucket_seconds: number;
  /** Requests in each bucket; every class has as many buckets. */
  classes: Record<StatusClass, number[]>;
  /** Requests too far away in time to be shown with the others. */
  outside: number;
}

export interface UnparsedLine {
  line: number;
  reason: string;
  text: string;
}

export interface Summary {
  lines: number;
  requests: number;
  unparsed: number;
  blank: number;
  /** How many lines didn't parse for which reason. */
  unparsed_reasons: Record<string, number>;
  unparsed_samples: UnparsedLine[];
  bytes_read: number;
  bytes_sent: number;
  unique_addresses: number;
  /** Whether `unique_addresses` was counted; otherwise it is what is known at least. */
  unique_addresses_exact: boolean;
  unique_paths: number;
  paths_exact: boolean;
  statuses: Record<string, number>;
  methods: Record<string, number>;
  top_paths: [path: string, requests: number][];
  status_classes: Record<string, number>;
  /** Unix seconds; null while there is no request. */
  first_time: number | null;
  last_time: number | null;
  timeline: Timeline;
}

export type ServerMessage =
  /** What can be followed. */
  | { type: "files"; files: string[] }
  | { type: "ready"; id: string; window_bytes: number; bytes: number }
  | { type: "ack"; bytes: number }
  | { type: "snapshot"; final: boolean; summary: Summary }
  | { type: "refused"; seq: number; code: string; message: string }
  | { type: "error"; code: string; message: string };

export type ClientMessage =
  | { type: "start"; files: { name: string; size: number }[] }
  | { type: "finish" }
  | { type: "cancel" };

/** The server sent what subprotocol linerate.logs.v1 has no place for. */
export class NotUnderstood extends Error {}

/**
 * Reads one text message of the server.
 *
 * Throws `NotUnderstood` when it isn't one of the protocol's messages in full.
 */
export function parseServerMessage(text: string): ServerMessage {
  const message = new Fields(parseJson(text), "message");
  const type = message.string("type");
  switch (type) {
    case "files":
      return { type, files: message.strings("files") };
    case "ready":
      return {
        type,
        id: message.string("id"),
        window_bytes: message.count("window_bytes"),
        bytes: message.count("bytes"),
      };
    case "ack":
      return { type, bytes: message.count("bytes") };
    case "snapshot":
      return {
        type,
        final: message.flag("final"),
        summary: parseSummary(message.object("summary")),
      };
    case "refused":
      return {
        type,
        seq: message.count("seq"),
        code: message.string("code"),
        message: message.string("message"),
      };
    case "error":
      return { type, code: message.string("code"), message: message.string("message") };
    default:
      throw new NotUnderstood(`message of unknown type ${type}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotUnderstood("message is no JSON");
  }
}

function parseSummary(summary: Fields): Summary {
  return {
    lines: summary.count("lines"),
    requests: summary.count("requests"),
    unparsed: summary.count("unparsed"),
    blank: summary.count("blank"),
    unparsed_reasons: summary.counts("unparsed_reasons"),
    unparsed_samples: summary.list("unparsed_samples").map((sample) => {
      const fields = new Fields(sample, "unparsed_samples");
      return {
        line: fields.count("line"),
        reason: fields.string("reason"),
        text: fields.string("text"),
      };
    }),
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
    timeline: parseTimeline(summary.object("timeline")),
  };
}

function parsePathCount(entry: unknown): [string, number] {
  if (!Array.isArray(entry) || typeof entry[0] !== "string" || !isCount(entry[1])) {
    throw new NotUnderstood("top_paths holds something else than [path, count]");
  }
  return [entry[0], entry[1]];
}

function parseTimeline(timeline: Fields): Timeline {
  const start = timeline.time("start") ?? 0;
  const bucket_seconds = timeline.count("bucket_seconds");
  const lists = timeline.object("classes");
  const classes = Object.fromEntries(
    STATUS_CLASSES.map((name) => [name, lists.list(name)]),
  ) as Record<StatusClass, unknown[]>;
  const buckets = classes["2xx"].length;
  for (const name of STATUS_CLASSES) {
    if (classes[name].length !== buckets || !classes[name].every(isCount)) {
      throw new NotUnderstood(`timeline of ${name} doesn't fit the others`);
    }
  }
  if (buckets > 0 && bucket_seconds === 0) {
    throw new NotUnderstood("timeline has buckets of no length");
  }
  return {
    start,
    bucket_seconds,
    classes: classes as Record<StatusClass, number[]>,
    outside: timeline.count("outside"),
  };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** One JSON object, whose fields are asked for by name and type. */
class Fields {
  readonly #fields: Record<string, unknown>;
  readonly #name: string;

  constructor(value: unknown, name: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new NotUnderstood(`${name} is no object`);
    }
    this.#fields = value as Record<string, unknown>;
    this.#name = name;
  }

  count(name: string): number {
    return this.#expect(name, isCount);
  }

  flag(name: string): boolean {
    return this.#expect(name, (value) => typeof value === "boolean");
  }

  string(name: string): string {
    return this.#expect(name, (value) => typeof value === "string");
  }

  list(name: string): unknown[] {
    return this.#expect(name, (value) => Array.isArray(value));
  }

  strings(name: string): string[] {
    const isString = (value: unknown) => typeof value === "string";
    return this.#expect(
      name,
      (value): value is string[] => Array.isArray(value) && value.every(isString),
    );
  }

  object(name: string): Fields {
    return new Fields(this.#fields[name], name);
  }

  /** Unix seconds, which may lie before 1970, or null. */
  time(name: string): number | null {
    return this.#expect(
      name,
      (value): value is number | null => value === null || Number.isFinite(value),
    );
  }

  /** An object all of whose fields are counts. */
  counts(name: string): Record<string, number> {
    const fields = this.object(name).#fields;
    if (!Object.values(fields).every(isCount)) {
      throw new NotUnderstood(`${name} holds something else than counts`);
    }
    return fields as Record<string, number>;
  }

  #expect<T>(name: string, is: (value: unknown) => value is T): T {
    const value = this.#fields[name];
    if (!is(value)) {
      throw new NotUnderstood(`${this.#name} has no valid ${name}`);
    }
    return value;
  }
}
