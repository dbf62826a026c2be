// What a person asks of a log: a range of time and values to include or exclude.

/** What requests can be told apart by, in the order in which the page offers it. */
export const DIMENSIONS = [
  "path",
  "status",
  "status_class",
  "address",
  "method",
  "host",
  "referrer",
  "agent",
  "bot",
  "country",
] as const;

export type Dimension = (typeof DIMENSIONS)[number];

export const DIMENSION_NAME: Record<Dimension, string> = {
  address: "Address",
  agent: "Agent",
  bot: "Bot",
  country: "Country",
  host: "Host",
  method: "Method",
  path: "Path",
  referrer: "Referrer",
  status: "Status",
  status_class: "Status class",
};

/** Requests whose `dimension` is `value`; a `*` at its beginning or end stands for anything. */
export interface Condition {
  dimension: Dimension;
  value: string;
  exclude: boolean;
}

/** From `from` to before `until`, in Unix seconds. */
export interface TimeRange {
  from: number;
  until: number;
}

/**
 * The query as the server takes it. Conditions of one dimension that include mean any of them; what
 * is left must satisfy all dimensions and none of the exclusions.
 */
export interface Query {
  from: number | null;
  until: number | null;
  conditions: Condition[];
  /** How many values each list has; 20 unless given, at most 1,000. */
  top_max?: number;
}

export function sameCondition(a: Condition, b: Condition): boolean {
  return a.dimension === b.dimension && a.value === b.value && a.exclude === b.exclude;
}
