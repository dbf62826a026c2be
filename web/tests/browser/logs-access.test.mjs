// Accessibility of the log page: names of elements that can be focused, contrast of text.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  chooseFile,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  waitForState,
  writeLog,
} from "./support.mjs";

/** WCAG 2.2, success criterion 1.4.3, for text of any size. */
const CONTRAST_MIN = 4.5;

let chromium, folder, log, server;

before(async () => {
  folder = await temporaryFolder();
  log = await writeLog(folder.path);
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

for (const scheme of ["light", "dark"]) {
  test(`everything has a name and is legible in ${scheme}`, async () => {
    const { page } = await openPage(chromium.browser, `${server.url}/logs`, { scheme });
    await assertNamed(page);
    await assertLegible(page);
    await chooseFile(page, log.path);
    await waitForState(page, "finished", "failed");
    await assertNamed(page);
    await assertLegible(page);
    await page.close();
  });
}

/** Fails if the accessibility tree contains a control without a name. */
async function assertNamed(page) {
  const session = await page.createCDPSession();
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const operable = /^(button|checkbox|combobox|link|progressbar|region|slider|table|textbox)$/;
  const nameless = nodes.filter(
    ({ ignored, role, name }) =>
      !ignored && operable.test(role?.value ?? "") && (name?.value ?? "") === "",
  );
  assert.deepEqual(
    nameless.map(({ role }) => role.value),
    [],
  );
  const ids = await page.$$eval("[id]", (all) => all.map(({ id }) => id));
  assert.equal(new Set(ids).size, ids.length, "ids are unique");
  await session.detach();
}

/** Fails if the contrast between text and background is too low. */
async function assertLegible(page) {
  const faint = await page.evaluate((least) => {
    const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = ([red, green, blue]) => {
      const linear = (value) =>
        value <= 0.04045 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
      return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    };
    const background = (element) => {
      for (let it = element; it !== null; it = it.parentElement) {
        const colour = getComputedStyle(it).backgroundColor;
        const [, , , alpha = 1] = channels(colour);
        if (colour.startsWith("rgb") && alpha === 1) {
          return colour;
        }
      }
      return "rgb(255, 255, 255)";
    };
    const ratio = (a, b) => {
      const [dark, light] = [luminance(channels(a)), luminance(channels(b))].sort((x, y) => x - y);
      return (light + 0.05) / (dark + 0.05);
    };
    const texts = [...document.querySelectorAll("body *")].filter(
      (element) =>
        element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
        !element.matches(":disabled, [aria-disabled='true']") &&
        [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== ""),
    );
    return texts
      .map((element) => [
        element.className,
        element.textContent.slice(0, 40),
        ratio(getComputedStyle(element).color, background(element)).toFixed(2),
      ])
      .filter(([, , found]) => Number(found) < least);
  }, CONTRAST_MIN);
  assert.deepEqual(faint, []);
}
