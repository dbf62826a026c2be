// A view, which is stored in the page's address: filters, a time range, and a comparison.

import { type Choice, filterOf, type Query, type TimeRange } from "./query.js";

/** The range that the figures are compared with. */
export type Comparison =
  { kind: "none" } | { kind: "previous" } | { kind: "range"; range: TimeRange };

export interface View {
  /** Null means the whole log. */
  range: TimeRange | null;
  /** Expressions, all of which must be true for a request. */
  filters: readonly string[];
  comparison: Comparison;
  /** A file that the server follows, rather than one that was dropped. */
  follow: string | null;
  /** The name of an upload, which the server keeps for a while. */
  log: string | null;
  /** The panels that are expanded to show many values. */
  more: readonly string[];
}

export const WHOLE: View = {
  range: null,
  filters: [],
  comparison: { kind: "none" },
  follow: null,
  log: null,
  more: [],
};

/** The number of values to compare with: those that are shown may have been rare then. */
const COMPARED_TOP = 1_000;
/** The number of values in an expanded panel. */
export const MORE_TOP = 200;

/** Returns the fragment of an address that `parseView` reads; empty for the whole log. */
export function fragmentOf({ range, filters, comparison, follow, log, more }: View): string {
  const fields = new URLSearchParams();
  if (follow !== null) {
    fields.append("follow", follow);
  }
  if (log !== null) {
    fields.append("log", log);
  }
  if (range !== null) {
    fields.append("from", String(range.from));
    fields.append("until", String(range.until));
  }
  for (const filter of filters) {
    fields.append("filter", filter);
  }
  if (comparison.kind === "previous") {
    fields.append("compare", "previous");
  } else if (comparison.kind === "range") {
    fields.append("compare", `${comparison.range.from}-${comparison.range.until}`);
  }
  for (const panel of more) {
    fields.append("more", panel);
  }
  return fields.toString();
}

/** Parses a fragment, with or without its `#`; invalid parts are ignored. */
export function parseView(fragment: string): View {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  return {
    range: parseRange(`${fields.get("from") ?? ""}-${fields.get("until") ?? ""}`),
    filters: fields.getAll("filter"),
    comparison: parseComparison(fields.get("compare")),
    follow: fields.get("follow"),
    log: fields.get("log"),
    more: fields.getAll("more"),
  };
}

/** Returns whether a fragment has filters in the former syntax: `path=/a*`, `not-status=404`. */
export function isOutdated(fragment: string): boolean {
  const former =
    /^(not-)?(address|agent|bot|country|host|method|path|referrer|status|status_class)$/;
  return [...new URLSearchParams(fragment.replace(/^#/, "")).keys()].some((it) => former.test(it));
}

function parseComparison(text: string | null): Comparison {
  if (text === "previous") {
    return { kind: "previous" };
  }
  const range = parseRange(text ?? "");
  return range === null ? { kind: "none" } : { kind: "range", range };
}

function parseRange(text: string): TimeRange | null {
  const [, from, until] = /^(\d{1,12})-(\d{1,12})$/.exec(text) ?? [];
  const range = { from: Number(from ?? NaN), until: Number(until ?? NaN) };
  return range.until > range.from ? range : null;
}

/** Returns the query for what is shown. */
export function queryOf({ range, filters, more }: View): Query {
  const query = { from: range?.from ?? null, until: range?.until ?? null, filters };
  return more.length === 0 ? query : { ...query, top_max: MORE_TOP };
}

/** Returns whether the view shows everything. */
export function isWhole({ range, filters }: View): boolean {
  return range === null && filters.length === 0;
}

/** Returns the view of everything, with the same log and panels. */
export function wholeOf(view: View): View {
  return { ...view, range: null, filters: [], comparison: { kind: "none" } };
}

/** Returns whether two views select the same requests. */
export function isSameSelection(a: View, b: View): boolean {
  const selection = ({ range, filters }: View) =>
    JSON.stringify([range?.from, range?.until, filters]);
  return selection(a) === selection(b);
}

/** Returns whether two views have the same figures. */
export function isSameQuery(a: View, b: View): boolean {
  return JSON.stringify(queryOf(a)) === JSON.stringify(queryOf(b));
}

/** Names what a view selects and another one does not, with a verb: "The filter … was". */
export function subjectOf(view: View, without: View): string {
  const filters = view.filters.filter((it) => !without.filters.includes(it));
  const [filter] = filters;
  if (filter !== undefined) {
    return filters.length === 1
      ? `The filter ${filter} was`
      : `The filters ${filters.join(", ")} were`;
  }
  return isSameSelection(view, without) ? "The comparison was" : "The selected period was";
}

/** Returns whether the server pushes the figures of the view unasked. */
export function isPushed(view: View): boolean {
  return isWhole(view) && view.more.length === 0;
}

/** Expands a panel, or collapses it. */
export function withMore(view: View, panel: string): View {
  const others = view.more.filter((it) => it !== panel);
  const had = others.length < view.more.length;
  return { ...view, more: had ? others : [...others, panel] };
}

/** Returns the query for the comparison, or null if there is none. */
export function comparisonQueryOf(view: View): Query | null {
  const range = comparedRange(view);
  return range === null ? null : { ...range, filters: view.filters, top_max: COMPARED_TOP };
}

/** Returns the range to compare with: the chosen one, or the period before the view's range. */
export function comparedRange({ range, comparison }: View): TimeRange | null {
  switch (comparison.kind) {
    case "none":
      return null;
    case "previous":
      return range === null ? null : previousOf(range);
    case "range":
      return comparison.range;
  }
}

/** Returns the period of the same length before a range. */
export function previousOf({ from, until }: TimeRange): TimeRange {
  return { from: 2 * from - until, until: from };
}

/** Adds the filter for a choice in place of its opposite, or removes it if it is already there. */
export function withToggled(view: View, choice: Choice): View {
  const filter = filterOf(choice);
  const opposite = filterOf({ ...choice, exclude: !choice.exclude });
  const others = view.filters.filter((it) => it !== filter && it !== opposite);
  return { ...view, filters: view.filters.includes(filter) ? others : [...others, filter] };
}
