import assert from "node:assert/strict";
import { test } from "node:test";
import { type Choice, filterOf } from "../../logs/query.js";
import { wholeSeconds, within } from "../../logs/ranges.js";
import {
  comparedRange,
  comparisonQueryOf,
  fragmentOf,
  isOutdated,
  isPushed,
  isWhole,
  parseView,
  queryOf,
  type View,
  WHOLE,
  withMore,
  withToggled,
} from "../../logs/view.js";

const ONLY: Choice = { field: "path", value: "/a b&c=d#e/ä", exclude: false };
const ONLY_FILTER = 'path == "/a b&c=d#e/ä"';
const CHOSEN: View = {
  range: { from: 1_611_280_020, until: 1_611_283_620 },
  filters: [ONLY_FILTER, "status >= 500 || size(path) > 9"],
  comparison: { kind: "range", range: { from: 1_611_193_620, until: 1_611_197_220 } },
  follow: "access.log",
  log: "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
  more: ["path", "bots"],
};

test("a view survives the round trip through the address", () => {
  assert.deepEqual(parseView(`#${fragmentOf(CHOSEN)}`), CHOSEN);
  const previous: View = { ...WHOLE, comparison: { kind: "previous" } };
  assert.deepEqual(parseView(fragmentOf(previous)), previous);
  assert.equal(fragmentOf(WHOLE), "");
  assert.deepEqual(parseView(""), WHOLE);
});

test("invalid parts of an address are ignored", () => {
  for (const fragment of [
    "#city=Bonn",
    "#from=5",
    "#from=9&until=5",
    "#compare=x",
    "#%",
    "#from=a&until=b",
  ]) {
    assert.deepEqual(parseView(fragment), WHOLE, fragment);
  }
});

test("filters in the former syntax are detected and not applied", () => {
  for (const fragment of ["#path=/a*", "#from=1&until=2&not-status=404", "#status_class=5xx"]) {
    assert.equal(isOutdated(fragment), true, fragment);
    assert.deepEqual(parseView(fragment).filters, [], fragment);
  }
  assert.equal(isOutdated(`#${fragmentOf(CHOSEN)}`), false);
  assert.equal(isOutdated(""), false);
});

test("a choice becomes a filter with quoted strings", () => {
  const filter = (value: string, exclude = false) => filterOf({ field: "agent", value, exclude });
  assert.equal(filter("a"), 'agent == "a"');
  assert.equal(filter("", true), 'agent != ""');
  assert.equal(filter("\"\\'*\n\u0001ä🦀"), 'agent == "\\"\\\\\'[*]\\n\\u0001ä🦀"');
  assert.equal(filterOf({ field: "status", value: "099", exclude: false }), "status == 99");
});

test("a choice replaces its opposite and is removed when made again", () => {
  const excluded = { ...ONLY, exclude: true };
  const once = withToggled(WHOLE, ONLY);
  assert.deepEqual(once.filters, [ONLY_FILTER]);
  assert.deepEqual(withToggled(once, excluded).filters, [filterOf(excluded)]);
  assert.deepEqual(withToggled(once, ONLY).filters, []);
  assert.equal(isWhole(once), false);
});

test("the previous period is as long as the range shown", () => {
  const view: View = { ...CHOSEN, comparison: { kind: "previous" } };
  assert.deepEqual(comparedRange(view), { from: 1_611_276_420, until: 1_611_280_020 });
  assert.equal(comparedRange({ ...view, range: null }), null);
  assert.deepEqual(comparisonQueryOf(view)?.filters, queryOf(view).filters);
  assert.equal(comparisonQueryOf(WHOLE), null);
});

test("a range stays within the log", () => {
  assert.deepEqual(within({ from: -50, until: 50 }, 0, 1_000), { from: 0, until: 100 });
  assert.deepEqual(within({ from: 950, until: 1_050 }, 0, 1_000), { from: 900, until: 1_000 });
  assert.equal(within({ from: -50, until: 2_000 }, 0, 1_000), null);
  assert.deepEqual(wholeSeconds(1.2, 1.3), { from: 1, until: 2 });
});

test("an expanded panel is queried; a collapsed one is pushed", () => {
  const many = withMore(WHOLE, "path");
  assert.deepEqual(many.more, ["path"]);
  assert.deepEqual(queryOf(many), { from: null, until: null, filters: [], top_max: 200 });
  assert.deepEqual([isWhole(many), isPushed(many), isPushed(WHOLE)], [true, false, true]);
  assert.deepEqual(withMore(withMore(many, "agent"), "path").more, ["agent"]);
  assert.deepEqual(withMore(many, "path"), WHOLE);
});
