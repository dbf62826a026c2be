// What a person has chosen to see: filters, a range of time, a comparison. It lives in the page's address.

import { type Choice, filterOf, type Query, type TimeRange } from "./query.js";

/** What the figures are compared with. */
export type Comparison =
  { kind: "none" } | { kind: "previous" } | { kind: "range"; range: TimeRange };

export interface View {
  /** Null is the whole log. */
  range: TimeRange | null;
  /** Expressions, all of which must be true for a request. */
  filters: readonly string[];
  comparison: Comparison;
  /** A file that the server follows, rather than one that was dropped. */
  follow: string | null;
  /** The panels of which many values are shown. */
  more: readonly string[];
}

export const WHOLE: View = {
  range: null,
  filters: [],
  comparison: { kind: "none" },
  follow: null,
  more: [],
};

/** So many values are asked for to compare with, since those shown may have been rare then. */
const COMPARED_TOP = 1_000;
/** How many values a panel has that shows many. */
export const MORE_TOP = 200;

/** Returns the fragment of an address that `parseView` reads; empty for the whole log. */
export function fragmentOf({ range, filters, comparison, follow, more }: View): string {
  const fields = new URLSearchParams();
  if (follow !== null) {
    fields.append("follow", follow);
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

/** Reads a fragment, with or without its `#`; what makes no sense in it is passed over. */
export function parseView(fragment: string): View {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  return {
    range: parseRange(`${fields.get("from") ?? ""}-${fields.get("until") ?? ""}`),
    filters: fields.getAll("filter"),
    comparison: parseComparison(fields.get("compare")),
    follow: fields.get("follow"),
    more: fields.getAll("more"),
  };
}

/** Says whether a fragment has filters as they were written before they were expressions: `path=/a*`, `not-status=404`. */
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

/** Returns the query of what is shown. */
export function queryOf({ range, filters, more }: View): Query {
  const query = { from: range?.from ?? null, until: range?.until ?? null, filters };
  return more.length === 0 ? query : { ...query, top_max: MORE_TOP };
}

/** Says whether the view is of everything. */
export function isWhole({ range, filters }: View): boolean {
  return range === null && filters.length === 0;
}

/** Says whether the server pushes the figures of the view unasked. */
export function isPushed(view: View): boolean {
  return isWhole(view) && view.more.length === 0;
}

/** Shows many values of a panel, or as few as at first. */
export function withMore(view: View, panel: string): View {
  const others = view.more.filter((it) => it !== panel);
  const had = others.length < view.more.length;
  return { ...view, more: had ? others : [...others, panel] };
}

/** Returns the query of what the figures are compared with, or null if there is nothing. */
export function comparisonQueryOf(view: View): Query | null {
  const range = comparedRange(view);
  return range === null ? null : { ...range, filters: view.filters, top_max: COMPARED_TOP };
}

/** Returns the range to compare with: the one chosen, or as much time before the view's own. */
export function comparedRange({ range, comparison }: View): TimeRange | null {
  switch (comparison.kind) {
    case "none":
      return null;
    case "previous":
      return range === null ? null : { from: 2 * range.from - range.until, until: range.from };
    case "range":
      return comparison.range;
  }
}

/** Adds the filter of a choice, in place of its opposite; if it is there already, takes it away. */
export function withToggled(view: View, choice: Choice): View {
  const filter = filterOf(choice);
  const opposite = filterOf({ ...choice, exclude: !choice.exclude });
  const others = view.filters.filter((it) => it !== filter && it !== opposite);
  return { ...view, filters: view.filters.includes(filter) ? others : [...others, filter] };
}
