// What a person asks of a log: a range of time, and filters in the language of the server (docs/gateway/filters.md).

/** The fields whose values the panels list. */
export type Field =
  "address" | "agent" | "bot" | "country" | "host" | "method" | "path" | "referrer" | "status";

/** A value of a panel, to be shown alone or left out. */
export interface Choice {
  field: Field;
  value: string;
  exclude: boolean;
}

/** From `from` to before `until`, in Unix seconds. */
export interface TimeRange {
  from: number;
  until: number;
}

/** The query as the server takes it. Each filter must be true for a request. */
export interface Query {
  from: number | null;
  until: number | null;
  filters: readonly string[];
  /** How many values each list has; 20 unless given, at most 1,000. */
  top_max?: number;
}

/** Returns the filter that a choice means. */
export function filterOf({ field, value, exclude }: Choice): string {
  // Of the fields that panels list only the status is a number. Strings of JSON are strings of filters.
  const constant = field === "status" ? String(Number(value)) : JSON.stringify(value);
  return `${field} ${exclude ? "!=" : "=="} ${constant}`;
}
