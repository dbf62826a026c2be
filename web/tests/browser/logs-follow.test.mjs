// Following a file on the server as it grows.

import assert from "node:assert/strict";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitForValue } from "./log-panels.mjs";
import {
  byId,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
  waitForState,
} from "./support.mjs";

let chromium, file, folder, server;

before(async () => {
  folder = await temporaryFolder();
  file = join(folder.path, "growing.log");
  await writeFile(file, lines(40, 200));
  server = await startServer({ flags: ["--tail", file] });
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

function lines(count, status) {
  const line = `192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" ${status} 5 "-" "t"\n`;
  return line.repeat(count);
}

test("a followed file is listed, and its figures grow with it", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`);
  await page.waitForSelector(byId("follow"));
  assert.equal(await textOf(page, "follow"), "growing.log");
  await page.click(byId("follow"));
  await waitForState(page, "following");
  await waitForValue(page, "requests", 40);
  await appendFile(file, lines(2, 404));
  await waitForValue(page, "requests", 42);
  await waitForValue(page, "errors", 2);

  // A link opens it directly, and a filter stays active while lines arrive.
  const filter = encodeURIComponent("status == 404");
  const link = `${server.url}/logs#follow=growing.log&filter=${filter}`;
  const other = await openPage(chromium.browser, link);
  await waitForValue(other.page, "requests", 2);
  await appendFile(file, lines(3, 404));
  await waitForValue(other.page, "requests", 5);
  await page.bringToFront(); // Nothing is drawn in the background.
  await waitForValue(page, "requests", 45);
  assert.deepEqual([...complaints, ...other.complaints], []);
  await other.page.close();
  await page.close();
});
