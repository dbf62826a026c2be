// The panel of limits: which clients exceed one, whom others would hit, and rules.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { waitForValue } from "./log-panels.mjs";
import {
  byId,
  focused,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
} from "./support.mjs";

const PICTURES = fileURLToPath(new URL("../../.screenshots/", import.meta.url));
const ASNS = fileURLToPath(
  new URL("../../../crates/linerate-logview/tests/data/asns.mmdb", import.meta.url),
);
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
/** A user agent that would end a string, a line and a block of a configuration. */
const HOSTILE = "<b>x</b>'; } deny all; {";

let chromium, file, folder, server;

before(async () => {
  await mkdir(PICTURES, { recursive: true });
  folder = await temporaryFolder();
  file = join(folder.path, "busy.log");
  const line = (address, second, path, agent) => {
    const clock = `01:${String(Math.floor(second / 60)).padStart(2, "0")}:${String(second % 60).padStart(2, "0")}`;
    return `${address} - - [22/Jan/2021:${clock} +0000] "GET ${path} HTTP/1.1" 200 5 "-" "${agent}"\n`;
  };
  const lines = [];
  for (let second = 0; second < 100; second += 1) {
    lines.push(line("192.0.2.66", second, "/a", HOSTILE));
    lines.push(line("192.0.2.66", second, "/b", HOSTILE));
  }
  for (let client = 0; client < 20; client += 1) {
    for (let second = 0; second < 4 + client; second += 1) {
      const address = `198.51.100.${client}`;
      lines.push(line(address, 10 * second, second === 0 ? "/" : "/style.css", BROWSER));
    }
  }
  await writeFile(file, lines.join(""));
  chromium = await startBrowser();
  server = await startServer({ flags: ["--tail", file, "--set", `logs.asn=${ASNS}`] });
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** Opens the page with the log. */
async function open(look = {}, fragment = "") {
  const link = `${server.url}/logs#follow=busy.log${fragment}`;
  const opened = await openPage(chromium.browser, link, look);
  await waitForValue(opened.page, "requests", fragment === "" ? 470 : 200);
  return opened;
}

/** Sets the limit and waits until the status says what is expected. */
async function count(page, requests, seconds, expected) {
  for (const [id, value] of [
    ["rates-requests", requests],
    ["rates-seconds", seconds],
  ]) {
    await page.$eval(byId(id), (input, text) => (input.value = text), String(value));
  }
  await page.click(byId("rates-count"));
  await waitForStatus(page, expected);
}

function waitForStatus(page, expected) {
  return page.waitForFunction(
    (selector, text) => document.querySelector(selector).textContent.includes(text),
    {},
    byId("rates-status"),
    expected,
  );
}

const cells = (page, id) =>
  page.$$eval(`${byId(id)} tr`, (rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)),
  );

test("clients over a limit are listed with the effect of other limits", async () => {
  const { page, complaints } = await open();
  await count(page, 10, 60, "1 address exceeds 10 requests in 60 s, of 21");
  assert.deepEqual(await cells(page, "rates-limited"), [
    ["192.0.2.66", "190", "200", "1", "120", "22 Jan 2021 01:00:05 – 01:01:39", "no"],
  ]);
  const effects = await cells(page, "rates-effects");
  assert.deepEqual(effects[0].slice(0, 3), ["1", "21", "20"]);
  assert.deepEqual(effects.at(-1).slice(0, 3), ["120", "0", "0"]);
  // Every limit can be chosen, also by key.
  await page.focus(`${byId("rates-effects")} tr:nth-child(5) button`);
  await page.keyboard.press("Enter");
  await waitForStatus(page, "19 addresses exceed 5 requests");
  assert.match(await textOf(page, "rates-status"), /18 of them look like people/);
  await page.click(`${byId("rates-limited")} button`);
  await waitForValue(page, "requests", 200);
  await waitForStatus(page, "1 address exceeds 5 requests in 60 s, of 1;");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("rules are shown for each program, and a hostile agent stays a text", async () => {
  const { page, complaints } = await open();
  await page.select(byId("rates-by"), "agent");
  await count(page, 100, 60, "2 user agents exceed");
  const values = await cells(page, "rates-limited");
  assert.equal(values[0][0], HOSTILE);
  await page.select(byId("rates-program"), "nginx");
  await page.waitForSelector(`${byId("rates-rules-place")}:not([hidden])`);
  const rules = await textOf(page, "rates-rules");
  assert.match(rules, /limit_req_zone \$http_user_agent zone=linerate:10m rate=100r\/m;/);
  assert.match(rules, /"~\^\\x3cb\\x3ex\\x3c\/b\\x3e\\x27\\x3b \\x7d deny all\\x3b \\x7b\$" 1;/);
  await page.select(byId("rates-program"), "nftables");
  await waitForStatus(page, "Nftables cannot limit by agent");
  await page.select(byId("rates-by"), "network");
  await count(page, 100, 60, "2 networks exceed");
  await page.waitForSelector(`${byId("rates-rules-place")}:not([hidden])`);
  assert.match(await textOf(page, "rates-rules"), /elements = {\s+192\.0\.2\.0\/24\s+}/);
  await page.select(byId("rates-program"), "");
  await page.select(byId("rates-by"), "asn");
  await count(page, 100, 60, "1 autonomous system exceeds");
  assert.match((await cells(page, "rates-limited"))[0][0], /AS64496 Example/);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the panel works with the keyboard and fits a phone", async () => {
  for (const [name, look] of [
    ["phone", { width: 390, height: 800 }],
    ["wide", { width: 1440, height: 900 }],
    ["dark", { width: 1440, height: 900, scheme: "dark" }],
  ]) {
    const { page, complaints } = await open(look);
    await page.focus(byId("rates-requests"));
    for (const id of ["rates-seconds", "rates-by", "rates-program", "rates-count"]) {
      await page.keyboard.press("Tab");
      assert.equal(await focused(page), id);
    }
    await page.keyboard.press("Enter");
    await waitForStatus(page, "1 address exceeds 60 requests");
    await page.select(byId("rates-program"), "haproxy");
    await page.waitForSelector(`${byId("rates-rules-place")}:not([hidden])`);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(overflow, 0);
    const panel = await page.$(byId("rates"));
    await panel.screenshot({ path: join(PICTURES, `logs-rates-${name}.png`) });
    assert.deepEqual(complaints, []);
    await page.close();
  }
});
