// Compares the panels of the log page with the oracle.

import assert from "node:assert/strict";
import { classOf, countBy, peaks, sum, top } from "./oracle.mjs";
import { byId, figure, rowsOf, textOf } from "./support.mjs";

/** The maximum number of rows in a panel. */
const ROWS = { path: 12, status: 12, address: 12, referrer: 12, agent: 12, method: 6 };

/** Waits until the page shows all requests, and compares every panel with the oracle's. */
export async function assertShows(page, requests) {
  await page.waitForFunction(
    (selector, wanted) => document.querySelector(selector).dataset.value === wanted,
    {},
    byId("requests"),
    String(requests.length),
  );
  assert.equal(await figure(page, "bytes-sent"), sum(requests, "bytes"));
  assert.equal(await figure(page, "unique-addresses"), top(requests, "address").distinct);
  const classes = countBy(requests, ({ status }) => classOf(status));
  assert.equal(await figure(page, "errors"), (classes["4xx"] ?? 0) + (classes["5xx"] ?? 0));
  for (const name of ["1xx", "2xx", "3xx", "4xx", "5xx"]) {
    assert.equal(await figure(page, `class-${name}`), classes[name] ?? 0, name);
  }
  for (const [panel, max] of Object.entries(ROWS)) {
    await assertPanel(page, panel, top(requests, panel, max));
  }
  for (const name of ["4xx", "5xx"]) {
    const errors = requests.filter(({ status }) => classOf(status) === name);
    const [shown, expected] = [await rowsOf(page, `errors-${name}`), top(errors, "path", 8).top];
    assert.deepEqual(
      shown.map(({ value, cells: [count] }) => [value, count]),
      expected.map(({ value, requests }) => [value, requests]),
      name,
    );
  }
  await assertFirewall(page, requests);
}

async function assertPanel(page, panel, { distinct, top }) {
  const rows = await rowsOf(page, panel);
  assert.deepEqual(
    rows.map(({ value, cells: [requests, , bytes] }) => ({ value, requests, bytes })),
    top.map(({ value, requests, bytes }) => ({ value, requests, bytes })),
    panel,
  );
  if (distinct > 0) {
    assert.ok(
      (await textOf(page, `${panel}-note`)).startsWith(
        `${distinct.toLocaleString("en-US")} different`,
      ),
    );
  } else if (top.length === 0) {
    assert.notEqual(await textOf(page, `${panel}-empty`), "", "an empty panel shows the reason");
  }
}

async function assertFirewall(page, requests) {
  const peak = peaks(requests);
  const all = top(requests, "address", Infinity).top;
  const byRate = await rowsOf(page, "by-rate");
  const highest = [...peak.values()].sort((a, b) => b - a).slice(0, byRate.length);
  assert.deepEqual(
    byRate.map(({ cells: [rate] }) => rate),
    highest,
    "the highest peaks, in order",
  );
  for (const {
    value,
    cells: [rate, , made, errors],
  } of byRate) {
    const expected = all.find((entry) => entry.value === value);
    assert.deepEqual(
      [rate, made, errors],
      [peak.get(value), expected.requests, expected.errors],
      value,
    );
  }
  const byErrors = await rowsOf(page, "by-errors");
  const most = all.map(({ errors }) => errors).filter((errors) => errors > 0);
  assert.deepEqual(
    byErrors.map(({ cells: [errors] }) => errors),
    most.sort((a, b) => b - a).slice(0, 8),
  );
}

/** Waits until the element marked `id` has the exact figure `value`. */
export function waitForValue(page, id, value) {
  return page.waitForFunction(
    (selector, wanted) => document.querySelector(selector).dataset.value === wanted,
    {},
    byId(id),
    String(value),
  );
}
