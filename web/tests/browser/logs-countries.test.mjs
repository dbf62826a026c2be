// Countries on the log page, which are shown only if the server has a country database.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { waitForValue } from "./log-panels.mjs";
import {
  byId,
  openPage,
  rowsOf,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
} from "./support.mjs";

const DATABASE = fileURLToPath(
  new URL("../../../crates/linerate-logview/tests/data/countries.mmdb", import.meta.url),
);
const REQUESTS = {
  "192.0.2.7": 5,
  "192.0.2.8": 2,
  "198.51.100.7": 4,
  "2001:db8::1": 1,
  "10.0.0.1": 3,
};

let chromium, file, folder;

before(async () => {
  folder = await temporaryFolder();
  file = join(folder.path, "abroad.log");
  const lines = Object.entries(REQUESTS).map(([address, requests]) =>
    `${address} - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 5 "-" "t"\n`.repeat(requests),
  );
  await writeFile(file, lines.join(""));
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await folder?.remove();
});

/** Opens the page of a server that follows the file. */
async function open(flags) {
  const server = await startServer({ flags: ["--tail", file, ...flags] });
  const link = `${server.url}/logs#follow=abroad.log`;
  const { page, complaints } = await openPage(chromium.browser, link);
  await waitForValue(page, "requests", 15);
  return { server, page, complaints };
}

const isShown = (page, id) =>
  page.$eval(byId(id), (panel) => panel.getBoundingClientRect().height > 0);

test("countries are listed with their names and can be selected by click and key", async () => {
  const { server, page, complaints } = await open(["--geoip", DATABASE]);
  assert.equal(await isShown(page, "panel-country"), true);
  const shown = async () =>
    (await rowsOf(page, "country")).map(({ value, cells: [requests] }) => [value, requests]);
  assert.deepEqual(await shown(), [
    ["DE", 7],
    ["FR", 4],
    ["JP", 1],
  ]);
  assert.equal(
    await textOf(page, "country-note"),
    "3 different · 3 requests from unknown addresses",
  );
  assert.match(await page.$eval(byId("country-rows"), (rows) => rows.textContent), /Germany/);

  await page.click(`${byId("country-rows")} .value-name`);
  await waitForValue(page, "requests", 7);
  assert.match(page.url(), /filter=country\+%3D%3D\+%22DE%22/);
  await page.click(`${byId("country-rows")} .value-name`);
  await waitForValue(page, "requests", 15);
  await page.focus(`${byId("country-rows")} .value-name`);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Delete");
  await waitForValue(page, "requests", 11);
  assert.deepEqual(await shown(), [
    ["DE", 7],
    ["JP", 1],
  ]);
  assert.deepEqual(complaints, []);
  await page.close();
  await server.stop();
});

test("without a database there is no country panel", async () => {
  const { server, page, complaints } = await open([]);
  assert.equal(await isShown(page, "panel-country"), false);
  assert.deepEqual(complaints, []);
  await page.close();
  await server.stop();
});
