// The values of a field in the order of a figure: the question and the server's answer.

import { counted, grouped, percentage } from "../shared/format.js";
import type { Fields } from "./fields.js";
import type { Field } from "./query.js";

/** The figures by which the server sorts values. */
export type SortKey = "bytes" | "errors" | "mean" | "requests" | "slowest";

export interface ListQuery {
  field: Field;
  by: SortKey;
  ascending: boolean;
  from: number | null;
  until: number | null;
  filters: readonly string[];
  top_max: number;
}

/** How long the requests of a value took, in microseconds. */
export interface ValueLatency {
  count: number;
  mean_us: number;
  p50_us: number;
  p90_us: number;
  p99_us: number;
  p999_us: number;
  max_us: number;
}

export interface ListedValue {
  /** Empty for requests without a value. */
  value: string;
  requests: number;
  bytes: number;
  errors: number;
  /** Null if the log does not say. */
  latency: ValueLatency | null;
}

export interface ValueList {
  requests: number;
  /** The number of values, without the empty one. */
  distinct: number;
  /** Requests with a value that is not tracked, and not listed. */
  not_counted: number;
  values: ListedValue[];
  /** The largest relative error of a percentile. */
  error: number;
}

/** Throws `NotUnderstood` if a field is missing or has the wrong type. */
export function parseValueList(list: Fields): ValueList {
  return {
    requests: list.count("requests"),
    distinct: list.count("distinct"),
    not_counted: list.count("not_counted"),
    values: list.objects("values").map((it) => ({
      value: it.string("value"),
      requests: it.count("requests"),
      bytes: it.count("bytes"),
      errors: it.count("errors"),
      latency: parseLatency(it.objectOrNull("latency")),
    })),
    error: list.count("error"),
  };
}

function parseLatency(latency: Fields | null): ValueLatency | null {
  return latency === null
    ? null
    : {
        count: latency.count("count"),
        mean_us: latency.count("mean_us"),
        p50_us: latency.count("p50_us"),
        p90_us: latency.count("p90_us"),
        p99_us: latency.count("p99_us"),
        p999_us: latency.count("p999_us"),
        max_us: latency.count("max_us"),
      };
}

/** Describes how many values there are, and how exact their figures. */
export function noteOf({ values, distinct, not_counted, error }: ValueList): string {
  const parts = [`${grouped(values.length)} of ${counted(distinct, "value")}`];
  if (values.some(({ latency }) => latency !== null)) {
    parts.push(`percentiles to ± ${percentage(error, 1)}`);
  }
  if (not_counted > 0) {
    parts.push(`${counted(not_counted, "request")} with values that are not tracked`);
  }
  return parts.join(" · ");
}
