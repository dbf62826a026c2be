// The panel "What changed?", at a server in Chromium and Firefox, and in a report.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  byId,
  chooseFile,
  FIREFOX,
  focused,
  openPage,
  PROGRAM,
  rowsOf,
  skipReason,
  startBrowser,
  startFirefox,
  startServer,
  temporaryFolder,
  textOf,
  waitForState,
} from "./support.mjs";

const PICTURES = fileURLToPath(new URL("../../.screenshots/", import.meta.url));
/** 2021-01-22 01:00 UTC. */
const HOUR = 1_611_277_200;
/** The minute of the spike, as in the address of the page. */
const SPIKE = `from=${HOUR + 1_800}&until=${HOUR + 1_860}`;

let chromium, server, folder, path;

before(async () => {
  await mkdir(PICTURES, { recursive: true });
  server = await startServer();
  chromium = await startBrowser();
  folder = await temporaryFolder();
  path = join(folder.path, "spike.log");
  await writeFile(path, spikeLog());
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** An hour with a request each second and, in minute 30, a client that guesses passwords. */
function spikeLog() {
  const two = (it) => String(it).padStart(2, "0");
  const line = (second, address, request, status) =>
    `${address} - - [22/Jan/2021:01:${two(Math.floor(second / 60))}:${two(second % 60)} +0000] ` +
    `"${request} HTTP/1.1" ${status} 5 "-" "Firefox"\n`;
  let log = "";
  for (let second = 0; second < 3_600; second += 1) {
    log += line(second, `192.0.2.${second % 50}`, `GET /page/${second % 7}`, 200);
    for (let i = 0; second >= 1_800 && second < 1_860 && i < 5; i += 1) {
      log += line(second, "203.0.113.9", "POST /login", 401);
    }
  }
  return log;
}

const waitForText = (page, id, pattern) =>
  page.waitForFunction(
    (selector, source) => new RegExp(source).test(document.querySelector(selector).textContent),
    {},
    byId(id),
    pattern.source,
  );

/** Opens the page with the log and the range of the spike. */
async function openSpike(browser, look) {
  const opened = await openPage(browser, `${server.url}/logs#${SPIKE}`, look);
  await chooseFile(opened.page, path);
  await waitForState(opened.page, "finished", "failed");
  return opened;
}

/** The values that explain the spike: each has 300 more requests. */
async function assertExplains(page) {
  await waitForText(page, "changes-note", /300 more requests than before/);
  const rows = await rowsOf(page, "changes");
  const values = rows.map(({ value }) => value).sort();
  assert.deepEqual(values, ["/login", "203.0.113.9", "401", "POST"]);
  for (const { value, cells } of rows) {
    assert.deepEqual(cells.slice(0, 3), [0, 300, 1], value);
  }
}

test("the values that explain a spike are found by keyboard, and a value filters", async () => {
  const { page, complaints } = await openSpike(chromium.browser);
  assert.equal(await page.$eval(byId("changes"), ({ hidden }) => hidden), true);
  await page.focus(byId("what-changed"));
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "changes-title");
  assert.equal(
    await page.$eval(byId("what-changed"), (it) => it.getAttribute("aria-expanded")),
    "true",
  );
  await assertExplains(page);
  assert.match(await textOf(page, "changes-note"), /360 requests from 22 Jan 2021 01:30:00/);

  // A filter is respected and named.
  await page.click(`${byId("changes-rows")} [data-value="/login"] .value-name`);
  await waitForText(page, "changes-note", /match the filter path == "\/login"/);
  assert.match(await textOf(page, "changes-note"), /^300 more requests than before/);
  assert.equal(await textOf(page, "filter"), 'path == "/login"×');
  const inLogin = (await rowsOf(page, "changes")).map(({ value }) => value);
  assert.ok(inLogin.includes("203.0.113.9") && !inLogin.includes("200"), String(inLogin));
  await page.click(byId("clear-filters"));
  await assertExplains(page);

  await page.focus(`${byId("changes-rows")} .value-name[tabindex="0"]`);
  await page.keyboard.press("End");
  await page.keyboard.press("Delete");
  await waitForText(page, "changes-note", /match the filter method != "POST"/);
  await page.focus(byId("changes-close"));
  await page.keyboard.press("Escape");
  assert.equal(await page.$eval(byId("changes"), ({ hidden }) => hidden), true);
  assert.equal(await focused(page), "what-changed");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("without a period, the panel says how to select one, and two ranges are compared", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  await page.click(byId("what-changed"));
  await waitForText(page, "changes-note", /^Select a period first/);

  // The spike, against the ten minutes at the beginning.
  const compare = `compare=${HOUR}-${HOUR + 600}`;
  await page.evaluate((fragment) => {
    location.hash = `${location.hash}&${fragment}`;
  }, `${SPIKE}&${compare}`);
  await waitForText(page, "changes-note", /300 more requests than at the rate before/);
  assert.match(await textOf(page, "changes-note"), /and 600 from 22 Jan 2021 01:00:00 to 01:10:00/);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a report answers what changed without a server", async () => {
  const report = join(folder.path, "report.html");
  execFileSync(PROGRAM, ["logs", path, "--html", report], { stdio: "ignore" });
  const { page, complaints } = await openPage(chromium.browser, "about:blank");
  await page.goto(`${pathToFileURL(report)}#${SPIKE}`);
  await page.click(byId("what-changed"));
  await assertExplains(page);
  assert.deepEqual(complaints, []);
  await page.close();
});

const skip = existsSync(FIREFOX) ? false : skipReason(`${FIREFOX} is absent`);

test("Firefox shows what changed", { skip }, async (t) => {
  const firefox = await startFirefox();
  t.after(() => firefox.close());
  const page = await firefox.browser.newPage();
  await page.goto(`${server.url}/logs#${SPIKE}`, { waitUntil: "load" });
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  await page.focus(byId("what-changed"));
  await page.keyboard.press("Enter");
  await assertExplains(page);
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "what-changed");
});

for (const [width, height] of [
  [390, 844],
  [1440, 900],
]) {
  for (const scheme of ["light", "dark"]) {
    test(`what changed fits ${width} px in ${scheme}`, async () => {
      const { page } = await openSpike(chromium.browser, { width, height, scheme });
      await page.click(byId("what-changed"));
      await assertExplains(page);
      const [content, shown] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        document.documentElement.clientWidth,
      ]);
      assert.ok(content <= shown, `${content} px of content in ${shown} px`);
      const panel = await page.$(byId("changes"));
      await panel.screenshot({ path: join(PICTURES, `logs-changes-${width}-${scheme}.png`) });
      await page.close();
    });
  }
}
