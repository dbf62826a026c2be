// The messages of subprotocol linerate.logs.v1, read strictly.

import { type Changes, type ChangesQuery, parseChanges } from "./changes.js";
import { Fields, NotUnderstood, parseJson } from "./fields.js";
import { type LatencySeries, parseLatencySeries } from "./latency-series.js";
import type { Query } from "./query.js";
import { parseRates, type RateQuery, type Rates } from "./rates-figures.js";
import { parseSummary, type Summary } from "./summary.js";
import { type ListQuery, parseValueList, type ValueList } from "./value-list.js";

export const SUBPROTOCOL = "linerate.logs.v1";

/** A line of the log that a query found; the first line of the first file is 1. */
export interface Row {
  line: number;
  text: string;
}

/** The filter of a query that is wrong, from 0, and the position in it, in characters from 1. */
export interface Misplaced {
  filter: number;
  column: number;
}

/** The server's answer to the query numbered `seq`. */
export type Answer =
  | { type: "figures"; seq: number; summary: Summary }
  | { type: "rates"; seq: number; rates: Rates }
  | { type: "rows"; seq: number; total: number; rows: Row[] }
  | { type: "changes"; seq: number; changes: Changes }
  | { type: "values"; seq: number; list: ValueList }
  | { type: "latency"; seq: number; latency: LatencySeries }
  /** How much of the log was examined for an answer that takes longer, 0 to 1. */
  | { type: "searching"; seq: number; fraction: number }
  | { type: "refused"; seq: number; code: string; message: string; at?: Misplaced };

/**
 * Whether uploads are accepted: `key` requires a key, also to follow; `closed` refuses everyone.
 */
const UPLOADS = ["allowed", "closed", "key", "off"] as const;
export type Uploads = (typeof UPLOADS)[number];

/** A file of an upload; its size is null if the client could not know it. */
export interface UploadedFile {
  name: string;
  size: number | null;
}

/** The server's answer to `start`, `resume`, `follow` or `view`. */
export interface Ready {
  type: "ready";
  id: string;
  window_bytes: number;
  bytes: number;
  /** The name by which others view the upload; absent for a log that the server follows. */
  view?: string;
  /** The files of an upload that another connection announced. */
  files?: UploadedFile[];
}

export type ServerMessage =
  | Answer
  /** `kept_s` is for how long an upload is kept after its last page was closed, in seconds. */
  | { type: "files"; files: string[]; uploads: Uploads; kept_s: number }
  | Ready
  | { type: "ack"; bytes: number }
  | { type: "snapshot"; final: boolean; summary: Summary }
  | { type: "error"; code: string; message: string };

export type Question =
  | { type: "query"; seq: number; query: Query }
  | { type: "rates"; seq: number; query: Query; rates: RateQuery }
  | { type: "rows"; seq: number; query: Query; containing: string; offset: number; limit: number }
  | { type: "changes"; seq: number; query: ChangesQuery }
  | { type: "values"; seq: number; query: ListQuery }
  | { type: "latency"; seq: number; query: Query }
  /** Withdraws a question. */
  | { type: "drop"; seq: number };

export type ClientMessage =
  | Question
  | {
      type: "start";
      files: { name: string; size: number }[];
      /** `auto`, `combined`, `common`, `json`, or a format string of nginx or Apache. */
      format: string;
      /** True to keep lines for `rows`. */
      rows: boolean;
    }
  | { type: "key"; key: string }
  | { type: "follow"; name: string }
  | { type: "resume"; id: string }
  | { type: "view"; name: string }
  | { type: "finish" }
  /** No more bytes follow; what has arrived can be queried. */
  | { type: "stop" }
  | { type: "cancel" };

/**
 * Parses one text message from the server.
 *
 * Throws `NotUnderstood` if it is not a complete message of the protocol.
 */
export function parseServerMessage(text: string): ServerMessage {
  const message = new Fields(parseJson(text), "message");
  const type = message.string("type");
  switch (type) {
    case "ready":
      return {
        type,
        id: message.string("id"),
        window_bytes: message.count("window_bytes"),
        bytes: message.count("bytes"),
        ...(message.has("view") && { view: message.string("view") }),
        ...(message.has("files") && {
          files: message.objects("files").map((file) => ({
            name: file.string("name"),
            size: file.countOrNull("size"),
          })),
        }),
      };
    case "ack":
      return { type, bytes: message.count("bytes") };
    case "snapshot":
      return {
        type,
        final: message.flag("final"),
        summary: parseSummary(message.object("summary")),
      };
    case "figures":
      return {
        type,
        seq: message.count("seq"),
        summary: { ...parseSummary(message.object("summary")), is_part: true },
      };
    case "rates":
      return {
        type,
        seq: message.count("seq"),
        rates: parseRates(message.object("rates")),
      };
    case "rows":
      return {
        type,
        seq: message.count("seq"),
        total: message.count("total"),
        rows: message.objects("rows").map((row) => ({
          line: row.count("line"),
          text: row.string("text"),
        })),
      };
    case "changes":
      return {
        type,
        seq: message.count("seq"),
        changes: parseChanges(message.object("changes")),
      };
    case "values":
      return {
        type,
        seq: message.count("seq"),
        list: parseValueList(message.object("list")),
      };
    case "latency":
      return {
        type,
        seq: message.count("seq"),
        latency: parseLatencySeries(message.object("latency")),
      };
    case "searching":
      return { type, seq: message.count("seq"), fraction: message.share("fraction") };
    case "refused":
      return {
        type,
        seq: message.count("seq"),
        code: message.string("code"),
        message: message.string("message"),
        ...(message.has("filter") && {
          at: { filter: message.count("filter"), column: message.count("column") },
        }),
      };
    case "files":
      return {
        type,
        files: message.strings("files"),
        uploads: parseUploads(message.string("uploads")),
        kept_s: message.count("kept_s"),
      };
    case "error":
      return { type, code: message.string("code"), message: message.string("message") };
    default:
      throw new NotUnderstood(`unknown message type ${type}`);
  }
}

function parseUploads(text: string): Uploads {
  const known = UPLOADS.find((it) => it === text);
  if (known === undefined) {
    throw new NotUnderstood(`unknown value of uploads: ${text}`);
  }
  return known;
}
