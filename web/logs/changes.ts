// What has changed between two periods: the question, the server's answer, and words for it.

import { counted, grouped, percentage, utcClock, utcDay } from "../shared/format.js";
import { type Fields, NotUnderstood } from "./fields.js";
import { type Field, FIELDS, type TimeRange } from "./query.js";
import { comparedRange, previousOf, type View } from "./view.js";

export interface ChangesQuery {
  before: TimeRange;
  after: TimeRange;
  filters: readonly string[];
}

export interface PeriodTotals extends TimeRange {
  requests: number;
  bytes: number;
  errors: number;
}

/** A value whose requests have changed. */
export interface Change {
  field: Field;
  /** Empty for requests without a value. */
  value: string;
  before: number;
  after: number;
  /** Its part of the difference, of which 1 is all; null if there is no difference. */
  share: number | null;
}

export interface Changes {
  before: PeriodTotals;
  after: PeriodTotals;
  /** How many requests more than at the rate before; negative for fewer. */
  difference: number;
  /** The values that explain the difference, the most important first. */
  values: Change[];
  /** True if some requests have values that are not tracked, and are not listed. */
  approximate: boolean;
}

/** Throws `NotUnderstood` if a field is missing or has the wrong type. */
export function parseChanges(changes: Fields): Changes {
  return {
    before: parsePeriod(changes.object("before")),
    after: parsePeriod(changes.object("after")),
    difference: changes.number("difference"),
    values: changes.objects("values").map((it) => ({
      field: parseField(it.string("field")),
      value: it.string("value"),
      before: it.count("before"),
      after: it.count("after"),
      share: it.numberOrNull("share"),
    })),
    approximate: changes.flag("approximate"),
  };
}

function parseField(name: string): Field {
  const known = FIELDS.find((it) => it === name);
  if (known === undefined) {
    throw new NotUnderstood(`unknown field ${name}`);
  }
  return known;
}

function parsePeriod(period: Fields): PeriodTotals {
  return {
    from: period.number("from"),
    until: period.number("until"),
    requests: period.count("requests"),
    bytes: period.count("bytes"),
    errors: period.count("errors"),
  };
}

/**
 * Returns the question for a view: its range, or `whole` in a comparison, is explained by what
 * differs from the range that it is compared with, or from the period before it. Null if the view
 * does not have two periods.
 */
export function changesQueryOf(view: View, whole: TimeRange | null): ChangesQuery | null {
  const after = view.range ?? (view.comparison.kind === "range" ? whole : null);
  if (after === null) {
    return null;
  }
  const before = comparedRange(view) ?? previousOf(after);
  return { before, after, filters: view.filters };
}

/** Describes how many requests there are more or fewer. */
export function differenceOf({ before, after, difference }: Changes): string {
  const rounded = Math.round(Math.abs(difference));
  const isSameLength = before.until - before.from === after.until - after.from;
  const rate = isSameLength ? "before" : "at the rate before";
  if (rounded === 0) {
    return isSameLength ? "As many requests as before." : "As many requests as at the rate before.";
  }
  const more = difference > 0 ? "more" : "fewer";
  return `${grouped(rounded)} ${more} request${rounded === 1 ? "" : "s"} than ${rate}.`;
}

/** Describes the two periods and their requests. */
export function periodsOf({ before, after }: Changes): string {
  return `${counted(after.requests, "request")} ${spanOf(after)}, and ${grouped(before.requests)} ${spanOf(before)} (UTC).`;
}

/** Names the filters that a comparison respects; empty without filters. */
export function scopeOf(filters: readonly string[]): string {
  switch (filters.length) {
    case 0:
      return "";
    case 1:
      return `Only requests that match the filter ${filters[0] ?? ""}.`;
    default:
      return `Only requests that match the filters ${filters.join(" and ")}.`;
  }
}

/** Explains why no value is listed; empty if some are. */
export function whyNoneOf({ values, before, after, difference }: Changes): string {
  if (values.length > 0) {
    return "";
  }
  if (before.requests + after.requests === 0) {
    return "No request matches in either period.";
  }
  const changed = difference < 0 ? "fell" : "grew";
  return `No value stands out: none ${changed} by more than all requests together, beyond what chance explains.`;
}

/** Returns the part of the difference that a value explains. */
export function shareOf({ share }: Change): string {
  if (share === null) {
    return "–";
  }
  return share < 0 ? `−${percentage(-share, 1)}` : percentage(share, 1);
}

function spanOf({ from, until }: TimeRange): string {
  const isOneDay = utcDay(from) === utcDay(until);
  const end = isOneDay ? utcClock(until, true) : `${utcDay(until)} ${utcClock(until, true)}`;
  return `from ${utcDay(from)} ${utcClock(from, true)} to ${end}`;
}
