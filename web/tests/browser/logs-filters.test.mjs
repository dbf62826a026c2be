// Compares filters and other selections on the log page with an oracle.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertShows, waitForValue } from "./log-panels.mjs";
import { readLog, select, sum, top } from "./oracle.mjs";
import {
  byId,
  chooseFile,
  figure,
  focused,
  openPage,
  rowsOf,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
  waitForState,
  writeLog,
} from "./support.mjs";

let chromium, folder, log, server;
/** The log as parsed by the oracle. */
let oracle;

before(async () => {
  folder = await temporaryFolder();
  log = await writeLog(folder.path);
  oracle = readLog(await readFile(log.path, "latin1"));
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** Opens the page, with a view in the fragment of its address if given, and reads the log. */
async function openLog(fragment = "") {
  const opened = await openPage(chromium.browser, `${server.url}/logs${fragment}`);
  await chooseFile(opened.page, log.path);
  await waitForState(opened.page, "finished", "failed");
  return opened;
}

/** Clicks a value of a panel, or the button that excludes it. */
async function clickValue(page, panel, value, part = ".value-name") {
  const row = `${byId(`${panel}-rows`)} tr[data-value="${value.replace(/["\\]/g, "\\$&")}"]`;
  await page.$eval(`${row} ${part}`, (button) => button.click());
}

test("clicks show only a value or exclude one, and chips remove the filters", async () => {
  const { page, complaints } = await openLog();
  const [status] = top(oracle.requests, "status").top;
  const only = { dimension: "status", value: status.value, exclude: false };
  await clickValue(page, "status", status.value);
  const some = select(oracle.requests, { conditions: [only] });
  await assertShows(page, some);

  const [path] = top(some, "path").top;
  const not = { dimension: "path", value: path.value, exclude: true };
  await clickValue(page, "path", path.value, ".value-exclude");
  const fewer = select(oracle.requests, { conditions: [only, not] });
  await assertShows(page, fewer);
  assert.deepEqual(await page.$$eval(byId("filter"), (chips) => chips.length), 2);

  await page.click(`${byId("filter")}:first-child .chip-remove`);
  await assertShows(page, select(oracle.requests, { conditions: [not] }));
  await page.click(byId("clear-filters"));
  await assertShows(page, oracle.requests);
  assert.deepEqual(complaints, []);
  await page.close();
});

/** Types a filter into the open form and submits it. */
async function typeFilter(page, text) {
  await page.$eval(byId("filter-text"), (input) => (input.value = ""));
  await page.type(byId("filter-text"), text);
  await page.keyboard.press("Enter");
}

const filtersOf = (page) =>
  page.$$eval(`${byId("filter")} .chip-change`, (chips) => chips.map((it) => it.textContent));

test("a filter can be typed, changed and removed", async () => {
  const { page, complaints } = await openLog();
  const part = top(oracle.requests, "path").top[0].value.slice(2, 6);
  const value = `*${part}*`;
  await page.click(byId("filter-open"));
  // Browsers report later that the menu is open.
  await page.waitForFunction(() => document.activeElement?.dataset.testid === "filter-text");
  await typeFilter(page, `path.contains(${JSON.stringify(part)})`);
  const path = { dimension: "path", value, exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [path] }));
  await page.click(byId("filter-open"));
  await typeFilter(page, "!(status >= 200 && status < 300)");
  const notGood = { dimension: "status_class", value: "2xx", exclude: true };
  await assertShows(page, select(oracle.requests, { conditions: [path, notGood] }));

  await page.click(`${byId("filter")}:nth-child(2) .chip-change`);
  assert.equal(
    await page.$eval(byId("filter-text"), (input) => input.value),
    "!(status >= 200 && status < 300)",
  );
  await typeFilter(page, "status == 404 || status == 301");
  const codes = ["404", "301"].map((value) => ({ dimension: "status", value, exclude: false }));
  await assertShows(page, select(oracle.requests, { conditions: [path, ...codes] }));
  assert.equal((await filtersOf(page)).length, 2);
  await page.click(`${byId("filter")}:nth-child(1) .chip-remove`);
  await assertShows(page, select(oracle.requests, { conditions: codes }));
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the position of an error in a filter is shown, and the filter can be corrected", async () => {
  const { page } = await openLog();
  await clickValue(page, "method", "GET");
  const get = { dimension: "method", value: "GET", exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [get] }));
  await page.click(byId("filter-open"));
  await typeFilter(page, "status >= 200 && pth == 5");
  await page.waitForSelector(`${byId("filter-problem")}:not(:empty)`);
  assert.match(
    await textOf(page, "filter-problem"),
    /^The filter status >= 200 && pth == 5 was not applied\. Filter 2, column 18: unknown field "pth"; the fields are address, /,
  );
  const state = await page.$eval(byId("filter-text"), (input) => ({
    at: input.selectionStart,
    invalid: input.getAttribute("aria-invalid"),
    isFocused: input === document.activeElement,
  }));
  assert.deepEqual(state, { at: 17, invalid: "true", isFocused: true });
  assert.deepEqual(await filtersOf(page), ['method == "GET"'], "only what is applied is shown");
  assert.equal(filtersInAddress(page).length, 1);
  await assertShows(page, select(oracle.requests, { conditions: [get] }));

  await typeFilter(page, "status == 200");
  const ok = { dimension: "status", value: "200", exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [get, ok] }));
  assert.deepEqual(await filtersOf(page), ['method == "GET"', "status == 200"]);
  assert.equal(await textOf(page, "objection"), "");
  await page.close();
});

const filtersInAddress = (page) =>
  new URLSearchParams(new URL(page.url()).hash.slice(1)).getAll("filter");

test("values that never match are errors at the field, also when a filter is changed", async () => {
  const { page } = await openLog();
  await clickValue(page, "method", "GET");
  const get = { dimension: "method", value: "GET", exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [get] }));
  await page.click(byId("filter-open"));
  for (const [filter, problem] of [
    ['status == "abc"', "status is a number; it cannot be compared with a string"],
    ["status == 1000", "no request can match: status is a whole number from 0 to 999"],
    ['status_class == "4x"', "no request can match: status_class is "],
    ['address == "10.0.0.0/40"', "invalid network; write 10.0.0.0/8 or 2001:db8::/32"],
  ]) {
    await typeFilter(page, filter);
    await page.waitForFunction(
      (selector, text) => document.querySelector(selector).textContent.includes(text),
      {},
      byId("filter-problem"),
      problem,
    );
    assert.equal(await page.$eval(byId("filter-text"), (input) => input.value), filter);
    assert.deepEqual(await filtersOf(page), ['method == "GET"']);
    assert.deepEqual(filtersInAddress(page), ['method == "GET"']);
  }
  await page.keyboard.press("Escape");
  await page.click(`${byId("filter")} .chip-change`);
  await typeFilter(page, "method == 5");
  await page.waitForSelector(`${byId("filter-problem")}:not(:empty)`);
  await typeFilter(page, 'method == "POST"');
  const post = { dimension: "method", value: "POST", exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [post] }));
  assert.deepEqual(await filtersOf(page), ['method == "POST"'], "it is replaced");
  await page.close();
});

test("a link with a filter that cannot be applied shows the whole log and says why", async () => {
  const fragment = new URLSearchParams({ filter: 'status == "abc"' });
  const { page } = await openLog(`#${fragment}`);
  await page.waitForSelector(`${byId("objection")}:not(:empty)`);
  assert.match(await textOf(page, "objection"), /^The filter status == "abc" was not applied\. /);
  await assertShows(page, oracle.requests);
  assert.deepEqual([await filtersOf(page), filtersInAddress(page)], [[], []]);
  await page.close();
});

test("wildcards and networks select values in typed filters and in links", async () => {
  const address = top(oracle.requests, "address").top.find(({ value }) => value.includes(":"));
  const start = address.value.split(":").slice(0, 2).join(":");
  const end = top(oracle.requests, "path").top[0].value.slice(-2);
  const filters = [`address == "${start}::/32"`, `path == "*${end}"`];
  const fragment = new URLSearchParams({ filter: filters[0] });
  const { page } = await openLog(`#${fragment}`);
  const network = { dimension: "address", value: `${start}:*`, exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [network] }));
  await page.click(byId("filter-open"));
  await typeFilter(page, filters[1]);
  const path = { dimension: "path", value: `*${end}`, exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [network, path] }));
  assert.deepEqual(filtersInAddress(page), filters);
  await page.close();
});

test("a log that is too large to be filtered says so before a filter is chosen", async (t) => {
  const small = await startServer({
    flags: ["--set", "logs.columns_bytes_max=100000", "--set", "logs.spill_bytes_max=0"],
  });
  t.after(() => small.stop());
  const { page } = await openPage(
    chromium.browser,
    `${small.url}/logs#${new URLSearchParams({ filter: "status == 404" })}`,
  );
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  await page.waitForSelector(`${byId("filters-off")}:not(:empty)`);
  assert.match(await textOf(page, "filters-off"), /^Filters are unavailable: .* 100000 bytes /);
  assert.match(await textOf(page, "objection"), /^The filter status == 404 was not applied\. /);
  await assertShows(page, oracle.requests);
  await clickValue(page, "method", "GET");
  assert.match(await textOf(page, "objection"), /^The filter method == "GET" was not applied\. /);
  assert.deepEqual([await filtersOf(page), filtersInAddress(page)], [[], []]);
  await assertShows(page, oracle.requests);
  await page.close();
});

test("a log that is larger than memory is filtered from a temporary file", async (t) => {
  const spilling = await startServer({ flags: ["--set", "logs.columns_bytes_max=400000"] });
  t.after(() => spilling.stop());
  const { page } = await openPage(chromium.browser, `${spilling.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  const [status] = top(oracle.requests, "status").top;
  await clickValue(page, "status", status.value);
  const only = { dimension: "status", value: status.value, exclude: false };
  await assertShows(page, select(oracle.requests, { conditions: [only] }));
  await page.close();
});

test("a link with filters in the former syntax reports that they are not applied", async () => {
  const { page } = await openPage(chromium.browser, `${server.url}/logs#path=/a*&not-status=404`);
  assert.match(await textOf(page, "trouble-title"), /^The filters in this link were not applied/);
  await page.close();
});

/** Drags across an element from one share of its width to another. */
async function drag(page, id, from, to) {
  const box = await page.$eval(`${byId(id)} .u-over`, (over) => {
    over.scrollIntoView({ block: "center" });
    return over.getBoundingClientRect().toJSON();
  });
  const y = box.top + box.height / 2;
  await page.mouse.move(box.left + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.left + ((from + to) / 2) * box.width, y);
  await page.mouse.move(box.left + to * box.width, y);
  await page.mouse.up();
}

/** Returns the range in the page's address. */
async function rangeOf(page) {
  await page.waitForFunction(() => location.hash.includes("until="));
  const fields = new URLSearchParams(new URL(page.url()).hash.slice(1));
  return { from: Number(fields.get("from")), until: Number(fields.get("until")) };
}

for (const id of ["chart", "overview-strip"]) {
  test(`a drag across the ${id} shows that range, and the whole log can be restored`, async () => {
    const { page } = await openLog();
    await drag(page, id, 0.25, 0.6);
    const range = await rangeOf(page);
    const times = oracle.requests.map(({ time }) => time);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    for (const [at, share] of [
      [range.from, 0.25],
      [range.until, 0.6],
    ]) {
      assert.ok(
        Math.abs(at - (first + share * (last - first))) < 0.02 * (last - first),
        "where it was dragged",
      );
    }
    await assertShows(page, select(oracle.requests, range));
    await page.click(byId("whole-log"));
    await assertShows(page, oracle.requests);
    await page.goBack();
    await assertShows(page, select(oracle.requests, range));
    await page.close();
  });
}

test("two ranges can be compared, with both figures and the change", async () => {
  const middle = oracle.requests[Math.floor(oracle.requests.length / 2)].time;
  const range = { from: middle, until: middle + 3_600 };
  const { page } = await openLog(`#from=${range.from}&until=${range.until}`);
  await assertShows(page, select(oracle.requests, range));
  await page.select(byId("compare"), "previous");
  const earlier = select(oracle.requests, { from: middle - 3_600, until: middle });
  await waitForValue(page, "requests-change", earlier.length);
  assert.match(
    await textOf(page, "requests-change"),
    new RegExp(`^was ${earlier.length.toLocaleString("en-US")}, `),
  );
  assert.equal(await figure(page, "bytes-sent-change"), sum(earlier, "bytes"));
  const before = new Map(
    top(earlier, "path", Infinity).top.map(({ value, requests }) => [value, requests]),
  );
  for (const { value, cells } of await rowsOf(page, "path")) {
    assert.equal(cells[3], before.get(value) ?? 0, `${value} before`);
  }

  await page.select(byId("compare"), "range");
  await page.$eval(byId("compare-from"), (input) => (input.value = ""));
  const other = { from: oracle.requests[0].time, until: oracle.requests[0].time + 1_800 };
  const written = (at) => new Date(at * 1_000).toISOString().slice(0, 19).replace("T", " ");
  for (const [id, at] of [
    ["compare-from", other.from],
    ["compare-until", other.until],
  ]) {
    await page.$eval(byId(id), (input) => input.focus());
    await page.$eval(byId(id), (input) => input.select());
    await page.keyboard.type(written(at));
    await page.keyboard.press("Tab");
  }
  await waitForValue(page, "requests-change", select(oracle.requests, other).length);
  await page.close();
});

test("a link restores the same view", async () => {
  const { page } = await openLog();
  await clickValue(page, "method", "GET");
  await drag(page, "chart", 0.3, 0.7);
  const range = await rangeOf(page);
  const query = { ...range, conditions: [{ dimension: "method", value: "GET", exclude: false }] };
  await assertShows(page, select(oracle.requests, query));
  const link = page.url();
  await page.close();

  const other = await openPage(chromium.browser, link);
  await waitForState(other.page, "finished", "failed");
  await assertShows(other.page, select(oracle.requests, query));
  assert.deepEqual(other.complaints, []);
  await other.page.close();

  const without = await openPage(chromium.browser, link.replace(/log=[0-9a-f]{32}&/, ""));
  assert.match(await textOf(without.page, "shared-view"), /^This link contains filters/);
  await chooseFile(without.page, log.path);
  await waitForState(without.page, "finished", "failed");
  await assertShows(without.page, select(oracle.requests, query));
  assert.deepEqual(without.complaints, []);
  await without.page.close();
});

test("matching lines are shown one page at a time", async () => {
  const { page } = await openLog();
  const [path] = top(oracle.requests, "path").top;
  await clickValue(page, "path", path.value);
  const fitting = select(oracle.requests, {
    conditions: [{ dimension: "path", value: path.value, exclude: false }],
  });
  await waitForValue(page, "lines-note", fitting.length);
  const shown = () =>
    page.$$eval(`${byId("lines")} tr`, (rows) =>
      rows.map(({ cells: [number, text] }) => [number.textContent, text.textContent]),
    );
  const expected = (from) =>
    fitting.slice(from, from + 25).map(({ line, text }) => [line.toLocaleString("en-US"), text]);
  assert.deepEqual(await shown(), expected(0));
  await page.click(byId("lines-next"));
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent.startsWith("26 to 50"),
    {},
    byId("lines-note"),
  );
  assert.deepEqual(await shown(), expected(25));
  await page.close();
});

test("filters and zoom can be set and undone by keyboard alone", async () => {
  const { page } = await openLog();
  const rows = top(oracle.requests, "status").top;
  await page.$eval(`${byId("status-rows")} .value-name`, (button) => button.focus());
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), rows[1].value);
  await page.keyboard.press("Delete");
  const not = { dimension: "status", value: rows[1].value, exclude: true };
  await assertShows(page, select(oracle.requests, { conditions: [not] }));
  await page.focus(`${byId("filter")} .chip-remove`);
  await page.keyboard.press("Enter");
  await assertShows(page, oracle.requests);
  assert.equal(await focused(page), "filter-open", "focus isn't lost with the chip");

  await page.focus(byId("chart"));
  await page.keyboard.press("Home");
  await page.keyboard.down("Shift");
  await page.keyboard.press("PageDown");
  await page.keyboard.up("Shift");
  await page.keyboard.press("Enter");
  await assertShows(page, select(oracle.requests, await rangeOf(page)));
  await page.focus(byId("overview-strip"));
  await page.keyboard.press("Escape");
  await assertShows(page, oracle.requests);
  await page.close();
});

test("a panel can be expanded and collapsed, and nothing else moves", async () => {
  const { page, complaints } = await openLog();
  const paths = top(oracle.requests, "path", 200).top;
  const valuesShown = async () => (await rowsOf(page, "path")).map(({ value }) => value);
  const expected = paths.map(({ value }) => value);
  const heightOf = () =>
    page.$eval(byId("panel-path"), (panel) => panel.getBoundingClientRect().height);
  const height = await heightOf();
  await page.click(byId("path-more"));
  await page.waitForFunction(
    (rows, many) => document.querySelectorAll(rows).length === many,
    {},
    `${byId("path-rows")} tr:not([data-value=""])`,
    expected.length,
  );
  assert.deepEqual(await valuesShown(), expected);
  assert.equal((await rowsOf(page, "agent")).length, 12);
  assert.equal(await heightOf(), height, "the table scrolls");
  assert.match(await page.evaluate(() => location.hash), /^#log=[0-9a-f]{32}&more=path$/);
  await page.click(byId("path-more"));
  assert.deepEqual(await valuesShown(), expected.slice(0, 12));
  assert.equal(await heightOf(), height);
  assert.match(await page.evaluate(() => location.hash), /^#log=[0-9a-f]{32}$/);
  assert.deepEqual(complaints, []);
  await page.close();
});
