// The content of a report: what `linerate logs --html` has written into the page.

import { Fields, NotUnderstood, parseJson } from "./fields.js";
import { parseSummary, type Summary } from "./summary.js";

export interface ReportContent {
  /** The name of the log. */
  name: string;
  /** How exactly queries are answered; null if they are not. */
  detail: Detail | null;
  /** The figures of the whole log, which are exact. */
  summary: Summary;
  /** The requests, for the engine; empty without `detail`. */
  packed: Uint8Array;
}

export interface Detail {
  /** Times are rounded down to multiples of this many seconds. */
  seconds: number;
  /** The number of values of each field that can be told apart; null for all. */
  values_max: number | null;
  /** True if sizes are means of similar requests, and durations are rounded. */
  rounds_numbers: boolean;
}

/** Parses a report: the length of its head, four bytes; the head, JSON; and the packed log. */
export function parseReport(bytes: Uint8Array): ReportContent {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.length < 4 ? Infinity : view.getUint32(0, true);
  if (4 + length > bytes.length) {
    throw new NotUnderstood("the report is truncated");
  }
  const text = new TextDecoder().decode(bytes.subarray(4, 4 + length));
  const head = new Fields(parseJson(text), "report");
  return {
    name: head.string("name"),
    detail: head.has("seconds")
      ? {
          seconds: head.count("seconds"),
          values_max: head.has("values_max") ? head.count("values_max") : null,
          rounds_numbers: head.flag("rounds_numbers"),
        }
      : null,
    summary: parseSummary(head.object("summary")),
    packed: bytes.subarray(4 + length),
  };
}

/** Returns how exact the figures of the report are, for people. */
export function noteOn(detail: Detail | null): string {
  if (detail === null) {
    return "";
  }
  const { seconds, values_max, rounds_numbers } = detail;
  const limits = [
    ...(seconds > 1 ? [`times rounded down to ${unitOf(seconds)}`] : []),
    ...(rounds_numbers ? ["mean sizes", "rounded durations"] : []),
    ...(values_max === null
      ? []
      : [`only the ${values_max.toLocaleString("en")} most frequent values of each field`]),
  ];
  return limits.length === 0
    ? "Filters cover all requests."
    : `To keep this report small, filters use ${new Intl.ListFormat("en-GB").format(limits)}. The figures without filters do not.`;
}

function unitOf(seconds: number): string {
  switch (seconds) {
    case 60:
      return "minutes";
    case 3_600:
      return "hours";
    default:
      return `${seconds} s`;
  }
}

/** Decodes base64 and decompresses it with gzip. */
export async function unpacked(base64: string): Promise<Uint8Array<ArrayBuffer>> {
  const compressed = Uint8Array.from(atob(base64.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
