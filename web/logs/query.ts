// A query on a log: a time range, and filters in the server's language (docs/gateway/filters.md).

/** The fields whose values are listed. */
export const FIELDS = [
  "address",
  "agent",
  "bot",
  "browser",
  "country",
  "host",
  "method",
  "path",
  "path_pattern",
  "referrer",
  "status",
  "system",
] as const;
export type Field = (typeof FIELDS)[number];

/** A value of a panel, to be shown alone or excluded. */
export interface Choice {
  field: Field;
  value: string;
  exclude: boolean;
}

/** From `from` (inclusive) to `until` (exclusive), in Unix seconds. */
export interface TimeRange {
  from: number;
  until: number;
}

/** A query as sent to the server. All filters must be true for a request. */
export interface Query {
  from: number | null;
  until: number | null;
  filters: readonly string[];
  /** The length of each list; by default 20, at most 1,000. */
  top_max?: number;
}

/** Returns the filter for a choice. */
export function filterOf({ field, value, exclude }: Choice): string {
  // Of the fields in panels, only the status is a number. JSON strings are valid strings in
  // filters, where an asterisk is a wildcard unless it is in brackets.
  const constant =
    field === "status" ? String(Number(value)) : JSON.stringify(value.replaceAll("*", "[*]"));
  return `${field} ${exclude ? "!=" : "=="} ${constant}`;
}
