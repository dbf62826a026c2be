// axe-core finds nothing to object to in the log page, in any of its states.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import {
  byId,
  chooseFile,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  waitForState,
  writeLog,
} from "./support.mjs";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let chromium, server, folder, log;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
  folder = await temporaryFolder();
  log = await writeLog(folder.path);
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** Fails if axe-core finds a violation. */
async function assertAccessible(page) {
  const violations = await page.evaluate(async (axe) => {
    if (window.axe === undefined) {
      window.eval(axe);
    }
    const found = await window.axe.run(document, { resultTypes: ["violations"] });
    return found.violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`,
    );
  }, AXE);
  assert.deepEqual(violations, []);
}

for (const scheme of ["light", "dark"]) {
  for (const width of [390, 1440]) {
    test(`the log page is accessible at ${width} px in ${scheme}`, async () => {
      const look = { width, height: 900, scheme };
      const { page } = await openPage(chromium.browser, `${server.url}/logs`, look);
      await page.setBypassCSP(true);
      await page.reload();
      await assertAccessible(page);
      await chooseFile(page, log.path);
      await waitForState(page, "finished", "failed");
      await assertAccessible(page);
      await page.click(`${byId("status-rows")} .value-exclude`);
      await page.click(byId("what-changed"));
      await page.click(`${byId("add-filter")} summary`);
      // Until then, the former figures are dimmed.
      await page.waitForFunction(() => document.body.dataset.filtering === "off");
      await assertAccessible(page);
      await page.close();
    });
  }
}
