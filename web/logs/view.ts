// What a person has chosen to see: filters, a range of time, a comparison. It lives in the page's address.

import {
  type Condition,
  type Dimension,
  DIMENSIONS,
  type Query,
  sameCondition,
  type TimeRange,
} from "./query.js";

/** What the figures are compared with. */
export type Comparison =
  { kind: "none" } | { kind: "previous" } | { kind: "range"; range: TimeRange };

export interface View {
  /** Null is the whole log. */
  range: TimeRange | null;
  conditions: Condition[];
  comparison: Comparison;
  /** A file that the server follows, rather than one that was dropped. */
  follow: string | null;
  /** The panels of which many values are shown. */
  more: readonly string[];
}

export const WHOLE: View = {
  range: null,
  conditions: [],
  comparison: { kind: "none" },
  follow: null,
  more: [],
};

const EXCLUDED = "not-";
/** So many values are asked for to compare with, since those shown may have been rare then. */
const COMPARED_TOP = 1_000;
/** How many values a panel has that shows many. */
export const MORE_TOP = 200;

/** Returns the fragment of an address that `parseView` reads; empty for the whole log. */
export function fragmentOf({ range, conditions, comparison, follow, more }: View): string {
  const fields = new URLSearchParams();
  if (follow !== null) {
    fields.append("follow", follow);
  }
  if (range !== null) {
    fields.append("from", String(range.from));
    fields.append("until", String(range.until));
  }
  for (const { dimension, value, exclude } of conditions) {
    fields.append(`${exclude ? EXCLUDED : ""}${dimension}`, value);
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
  const conditions: Condition[] = [];
  for (const [name, value] of fields) {
    const exclude = name.startsWith(EXCLUDED);
    const dimension = exclude ? name.slice(EXCLUDED.length) : name;
    if (isDimension(dimension)) {
      conditions.push({ dimension, value, exclude });
    }
  }
  return {
    range: parseRange(`${fields.get("from") ?? ""}-${fields.get("until") ?? ""}`),
    conditions,
    comparison: parseComparison(fields.get("compare")),
    follow: fields.get("follow"),
    more: fields.getAll("more"),
  };
}

function isDimension(name: string): name is Dimension {
  return (DIMENSIONS as readonly string[]).includes(name);
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
export function queryOf({ range, conditions, more }: View): Query {
  const query = { from: range?.from ?? null, until: range?.until ?? null, conditions };
  return more.length === 0 ? query : { ...query, top_max: MORE_TOP };
}

/** Says whether the view is of everything. */
export function isWhole({ range, conditions }: View): boolean {
  return range === null && conditions.length === 0;
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
  return range === null ? null : { ...range, conditions: view.conditions, top_max: COMPARED_TOP };
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

/** Adds the condition, in place of its opposite; if it is there already, takes it away. */
export function withToggled(view: View, condition: Condition): View {
  const opposite = { ...condition, exclude: !condition.exclude };
  const others = view.conditions.filter(
    (c) => !sameCondition(c, condition) && !sameCondition(c, opposite),
  );
  const had = view.conditions.some((c) => sameCondition(c, condition));
  return { ...view, conditions: had ? others : [...others, condition] };
}
