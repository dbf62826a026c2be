import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changesQueryOf,
  differenceOf,
  periodsOf,
  scopeOf,
  shareOf,
  whyNoneOf,
} from "../../logs/changes.js";
import { type View, WHOLE } from "../../logs/view.js";
import { CHANGES } from "./changes.js";

const RANGE = { from: 600, until: 660 };
const SPAN = { from: 0, until: 9_000 };

test("a range is compared with the period before it, or with the chosen one", () => {
  const view: View = { ...WHOLE, range: RANGE, filters: ["status >= 500"] };
  const previous = { from: 540, until: 600 };
  assert.deepEqual(changesQueryOf(view, SPAN), {
    before: previous,
    after: RANGE,
    filters: ["status >= 500"],
  });
  const chosen = { from: 0, until: 300 };
  const comparison = { kind: "range", range: chosen } as const;
  assert.deepEqual(changesQueryOf({ ...view, comparison }, SPAN)?.before, chosen);
  assert.deepEqual(changesQueryOf({ ...WHOLE, comparison }, SPAN), {
    before: chosen,
    after: SPAN,
    filters: [],
  });
  assert.equal(changesQueryOf(WHOLE, SPAN), null);
  assert.equal(changesQueryOf({ ...WHOLE, comparison: { kind: "previous" } }, SPAN), null);
  assert.equal(changesQueryOf({ ...WHOLE, comparison }, null), null);
});

test("the difference, the periods and the filters are named", () => {
  assert.equal(differenceOf(CHANGES), "40 more requests than before.");
  assert.equal(differenceOf({ ...CHANGES, difference: -1 }), "1 fewer request than before.");
  assert.equal(differenceOf({ ...CHANGES, difference: 0.2 }), "As many requests as before.");
  const longer = { ...CHANGES, before: { ...CHANGES.before, from: 0 } };
  assert.equal(differenceOf(longer), "40 more requests than at the rate before.");
  assert.equal(
    periodsOf(CHANGES),
    "41 requests from 22 Jan 2021 01:02:00 to 01:03:00, and 1 from 22 Jan 2021 01:01:00 to 01:02:00 (UTC).",
  );
  assert.equal(scopeOf([]), "");
  assert.equal(scopeOf(["a"]), "Only requests that match the filter a.");
  assert.equal(scopeOf(["a", "b"]), "Only requests that match the filters a and b.");
});

test("an empty list is explained", () => {
  assert.equal(whyNoneOf(CHANGES), "");
  assert.match(whyNoneOf({ ...CHANGES, values: [] }), /^No value stands out: none grew/);
  assert.match(whyNoneOf({ ...CHANGES, values: [], difference: -9 }), /none fell/);
  const none = { from: 0, until: 1, requests: 0, bytes: 0, errors: 0 };
  const nothing = { ...CHANGES, values: [], before: none, after: none };
  assert.equal(whyNoneOf(nothing), "No request matches in either period.");
});

test("contributions may be unknown, negative or more than all", () => {
  const [change] = CHANGES.values;
  assert.ok(change !== undefined);
  const share = (it: number | null) => shareOf({ ...change, share: it });
  assert.deepEqual(
    [share(null), share(0.5), share(1.25), share(-0.1)],
    ["–", "50.0 %", "125.0 %", "−10.0 %"],
  );
});
