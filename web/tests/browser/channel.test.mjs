// The channel page in a real browser, against the real server.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import {
  byId,
  figure,
  FIREFOX,
  focused,
  openPage,
  skipReason,
  startBrowser,
  startFirefox,
  startServer,
  tabTo,
  textOf,
  untilFigure,
  untilText,
} from "./support.mjs";

const ADMIN_KEY = "0123456789abcdef-admin";

let chromium, server;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

const addressOf = (channel, at = server) => `${at.url}/channel?name=${encodeURIComponent(channel)}`;

async function openChannel(channel, options) {
  const opened = await openPage(chromium.browser, addressOf(channel), options);
  await untilText(opened.page, "state", "live");
  return opened;
}

async function api(method, body) {
  const answer = await fetch(`${server.url}/api/${method}`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text);
}

const publish = (channel, data) => api("publish", { channel, data });
const publishBytes = (channel, bytes) =>
  api("publish", { channel, b64data: Buffer.from(bytes).toString("base64") });

/** Publishes many messages at once. */
function flood(channel, count, dataOf) {
  const commands = Array.from({ length: count }, (_, i) => ({
    publish: { channel, data: dataOf(i) },
  }));
  return api("batch", { commands });
}

/** Waits until `text` is in the first row, and unfolds this row. */
async function unfold(page, text) {
  await page.waitForFunction(
    (selector, wanted) => document.querySelector(selector)?.textContent.includes(wanted),
    {},
    byId("message-text"),
    text,
  );
  await page.$eval(`${byId("messages")} details`, (details) => (details.open = true));
  await page.waitForSelector(`${byId("messages")} .message-body`);
}

async function type(page, id, text) {
  await page.$eval(byId(id), (input) => (input.value = ""));
  await page.type(byId(id), text);
}

test("the overview and the admin page lead to it", async () => {
  const { page, complaints } = await openPage(chromium.browser, server.url);
  await type(page, "channel-name", "news:a&b");
  await page.keyboard.press("Enter");
  await page.waitForSelector(byId("title"));
  await untilText(page, "state", "live");
  assert.equal(await textOf(page, "title"), "news:a&b");

  await page.goto(`${server.url}/admin`);
  const link = `${byId("channels-rows")} a[href="/channel?name=news%3Aa%26b"]`;
  // The subscription of the page before may still be listed, or is by now this one.
  const other = await openChannel("news:a&b");
  await page.bringToFront();
  await page.waitForSelector(link);
  await page.$eval(link, (one) => one.click());
  await untilText(page, "state", "live");
  assert.deepEqual(complaints, []);
  await other.page.close();
  await page.close();
});

test("messages arrive with their position, and unfold as a tree", async () => {
  const { page, complaints } = await openChannel("shop:orders");
  await publish("shop:orders", { id: 7, items: [{ name: "κόσμε" }, null], open: true });
  await unfold(page, '"id":7');
  assert.match(await page.$eval(".message-head", (head) => head.textContent), /#1 {2}\d+ B$/);
  const tree = await page.$eval(".tree", (one) => one.innerText);
  assert.match(tree, /id: 7/);
  assert.match(tree, /items: \[ 2 elements \]/);
  await page.$eval(".tree-children details", (details) => (details.open = true));
  await page.$eval(".tree-children details details", (details) => (details.open = true));
  await page.waitForFunction(() => document.querySelector(".tree").innerText.includes("κόσμε"));
  await page.waitForFunction(
    (selector) => Number(document.querySelector(selector).dataset.value) >= 0,
    {},
    byId("published-messages"),
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test("hostile payloads neither run nor break the page", async () => {
  const channel = "hostile:a";
  const { page, complaints } = await openChannel(channel);
  const markup = '<img src=x onerror="window.isHacked=true"><script>window.isHacked=true</script>';
  await publish(channel, { [markup]: markup, ["__proto__"]: 1 });
  await publishBytes(channel, `{"__proto__":{"isHacked":true},"text":"a\u202egpj.exe"}`);
  await unfold(page, "__proto__");
  const tree = await page.$eval(".tree", (one) => one.innerText);
  assert.match(tree, /__proto__: \{ 1 field \}/);
  assert.match(tree, /text: "a\\u202egpj\.exe"/);

  await publishBytes(channel, "[".repeat(10_000) + "]".repeat(10_000));
  await unfold(page, "[[[[");
  assert.match(await page.$eval(".tree", (one) => one.innerText), /\[ 1 element \]/);

  await publish(channel, { large: "x".repeat(1_000_000) });
  await unfold(page, '{"large":"xxx');
  assert.match(
    await page.$eval(".tree", (one) => one.innerText),
    /large: "x{2000}" … \(998,000 more characters\)/,
  );
  await publishBytes(channel, [0xff, 0xfe, 0x00, 0x41]);
  await unfold(page, "ff fe 00 41");
  assert.match(await page.$eval(".message-full", (one) => one.innerText), /ff fe 00 41 .*···A/);
  assert.equal(await page.evaluate(() => "isHacked" in window || "isHacked" in {}), false);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a channel name of markup is text, on the page and in the code", async () => {
  const channel = '<img/src=x/onerror="window.isHacked=true">\u202e';
  const { page, complaints } = await openChannel(channel);
  assert.equal(await textOf(page, "title"), channel.replace("\u202e", "\\u202e"));
  assert.ok(!(await textOf(page, "code")).includes("\u202e"));
  assert.equal(await page.evaluate(() => "isHacked" in window), false);
  assert.equal(await page.$("main img"), null);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a filter counts what matches, and shows its error at the field", async () => {
  const channel = "filtered:a";
  const { page } = await openChannel(channel);
  await type(page, "filter", "n ==");
  await page.waitForFunction(
    (selector) => /\(107\)/.test(document.querySelector(selector).textContent),
    {},
    byId("filter-trouble"),
  );
  assert.equal(await page.$eval(byId("filter"), (input) => input.ariaInvalid), "true");
  await type(page, "filter", "n < 25");
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent === "",
    {},
    byId("filter-trouble"),
  );
  // The subscription with the filter is there once one of these has arrived in it.
  await page.waitForFunction(
    async (selector, url, body) => {
      await fetch(url, { method: "POST", body });
      return document.querySelectorAll(selector).length > 0;
    },
    { polling: 200 },
    byId("message-text"),
    `${server.url}/api/publish`,
    JSON.stringify({ channel, data: { n: 0 } }),
  );
  const before = await figure(page, "account");
  await flood(channel, 100, (n) => ({ n }));
  await page.waitForFunction(
    (selector, from) => {
      const { value, published } = document.querySelector(selector).dataset;
      return Number(value) >= from + 25 && Number(published) - Number(value) === 75;
    },
    {},
    byId("account"),
    before,
  );
  assert.match(await textOf(page, "account"), /^\d+ of \d+ messages match \(\d+\.\d %\)/);
  await page.close();
});

test("conflation is counted before and after", async () => {
  const channel = "conflated:a";
  const { page } = await openChannel(channel);
  await page.select(byId("conflate"), "key");
  await page.select(byId("batch"), "1000");
  await page.waitForSelector(`${byId("pointer-field")}:not([hidden])`);
  assert.match(
    await textOf(page, "code"),
    /batchIntervalMs: 1000[\s\S]*conflate: "\/key"|conflate: "\/key"/,
  );
  await page.waitForFunction(
    async (selector, url, body) => {
      await fetch(url, { method: "POST", body });
      return Number(document.querySelector(selector).dataset.value) > 0;
    },
    { polling: 200 },
    byId("account"),
    `${server.url}/api/publish`,
    JSON.stringify({ channel, data: { key: "a", n: -1 } }),
  );
  await flood(channel, 500, (n) => ({ key: n % 2 === 0 ? "a" : "b", n }));
  await page.waitForFunction(
    (account, text) => {
      const { value, published } = document.querySelector(account).dataset;
      const isLastShown = [...document.querySelectorAll(text)].some((one) =>
        one.textContent.includes('"n":499'),
      );
      return isLastShown && Number(published) >= 500 && Number(value) < 100;
    },
    {},
    byId("account"),
    byId("message-text"),
  );
  await page.close();
});

test("thousands of messages are counted, a few are kept, and the page stays usable", async () => {
  const channel = "fast:a";
  const { page, complaints } = await openChannel(channel);
  const rounds = 10;
  for (let round = 0; round < rounds; round += 1) {
    await flood(channel, 1_000, (n) => ({ round, n, text: "x".repeat(200) }));
  }
  await page.waitForFunction(
    (selector) => document.querySelector(selector)?.textContent.includes('"round":9,"n":999'),
    {},
    byId("message-text"),
  );
  const rows = await page.$$eval(byId("message-text"), (all) => all.length);
  assert.equal(rows, 50);
  await page.click(byId("messages-pause"));
  assert.equal(await textOf(page, "messages-pause"), "Resume");
  await flood(channel, 1_000, (n) => ({ n }));
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent === "paused, 1,000 newer messages",
    {},
    byId("messages-state"),
  );
  assert.match(await textOf(page, "message-text"), /"round":9,"n":999/);
  await page.click(byId("messages-pause"));
  await page.waitForFunction(
    (selector) => /^\{"n":999\}/.test(document.querySelector(selector).textContent),
    {},
    byId("message-text"),
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the history has positions, and presence shows who joins and leaves", async () => {
  const channel = "demo:kept";
  await flood(channel, 12, (n) => ({ n }));
  const { page, complaints } = await openChannel(channel);
  await untilFigure(page, "history-state", 10);
  const [newest] = await page.$$eval(`${byId("history-rows")} .message-head`, (all) =>
    all.map((one) => one.textContent),
  );
  assert.match(newest, /^\S+:12 /);
  await page.select(byId("history-limit"), "50");
  await page.click(byId("history-load"));
  await untilFigure(page, "history-state", 12);
  await untilFigure(page, "presence-state", 1);

  const other = await openChannel(channel);
  await page.bringToFront();
  await untilFigure(page, "presence-state", 2);
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent.includes("anonymous joined"),
    {},
    byId("presence-events"),
  );
  await other.page.close();
  await untilFigure(page, "presence-state", 1);
  assert.match(await textOf(page, "presence-events"), /anonymous left/);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("messages are published as the application, with tags, and as a client", async () => {
  const { page, complaints } = await openChannel("demo:published");
  await type(page, "publish-data", "not {json");
  assert.match(await textOf(page, "publish-check"), /^not JSON, published as text, 9 B: /);
  await page.type(byId("publish-tags"), "event=created");
  await page.click(byId("publish"));
  await untilText(page, "message-text", "not {json");
  assert.equal(await page.$eval(".message .mark", (mark) => mark.textContent), "event=created");

  await page.select(byId("publish-as"), "client");
  await type(page, "publish-data", '{"exact": 12345678901234567890}');
  assert.match(await textOf(page, "publish-check"), /^valid JSON, /);
  await page.click(byId("publish"));
  await untilText(page, "message-text", '{"exact": 12345678901234567890}');
  await untilFigure(page, "publish-state", 2);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("refusals name the setting, and the other parts keep working", async (t) => {
  const sets = [
    "channel.allow_history=false",
    "channel.presence=false",
    "channel.allow_filter=false",
  ];
  const strict = await startServer({ flags: sets.flatMap((setting) => ["--set", setting]) });
  t.after(() => strict.stop());
  const { page } = await openPage(chromium.browser, addressOf("news", strict));
  await untilText(page, "state", "live");
  const until = (id, pattern) =>
    page.waitForFunction(
      (selector, source) => new RegExp(source).test(document.querySelector(selector).textContent),
      {},
      byId(id),
      pattern.source,
    );
  await until("history-trouble", /Set allow_history = true in \[channel\]/);
  await until("presence-trouble", /Set presence = true in \[channel\]/);
  await type(page, "filter", "a == 1");
  await until("filter-trouble", /set allow_filter = true in \[channel\]/);
  await type(page, "filter", " ");
  // The page below the field moves when the error disappears.
  await until("filter-trouble", /^$/);
  await page.select(byId("publish-as"), "client");
  await page.click(byId("publish"));
  await until("publish-trouble", /Set allow_publish = true/);
  await page.select(byId("publish-as"), "application");
  await page.click(byId("publish"));
  await untilText(page, "message-text", '{"hello":"world"}');
  await page.close();
});

test("a server with keys asks for a token, and explains a refused channel", async (t) => {
  const sets = ["auth.anonymous=true", `auth.admin_key=${ADMIN_KEY}`];
  const keyed = await startServer({ flags: sets.flatMap((setting) => ["--set", setting]) });
  t.after(() => keyed.stop());
  const { page, complaints } = await openPage(chromium.browser, addressOf("news:a", keyed));
  await page.waitForFunction(
    (selector) =>
      /allow_subscribe = true.*the \[\[namespace\]\] "news" if there is one/.test(
        document.querySelector(selector).textContent,
      ),
    {},
    byId("page-trouble"),
  );
  assert.deepEqual(complaints, []);

  const closed = await startServer({ flags: ["--set", `auth.admin_key=${ADMIN_KEY}`] });
  t.after(() => closed.stop());
  await page.goto(addressOf("news:a", closed));
  await page.waitForSelector(`${byId("token-form")}:not([hidden])`);
  assert.match(await textOf(page, "token-note"), /^This server requires a token: /);
  assert.match(await textOf(page, "code"), /TOKEN/);
  await page.close();
});

test("the page works by keyboard alone", async () => {
  const { page } = await openChannel("demo:keys");
  await publish("demo:keys", { a: [1] });
  await page.waitForSelector(byId("message-text"));
  await tabTo(page, "messages-frame");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".message-body .tree");
  assert.match(await textOf(page, "messages-state"), /^held while you are in the list/);
  await tabTo(page, "publish-data");
  assert.equal(await focused(page), "publish-data");
  await tabTo(page, "publish");
  await page.keyboard.press("Enter");
  await untilFigure(page, "publish-state", 1);
  await page.close();
});

test("without a name, the page asks for one", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/channel`);
  assert.equal(await focused(page), "name");
  await page.keyboard.type("news");
  await page.keyboard.press("Enter");
  await untilText(page, "state", "live");
  assert.deepEqual(complaints, []);
  await page.close();
});

const skip = existsSync(FIREFOX) ? false : skipReason(`${FIREFOX} is absent`);

test("Firefox shows messages, trees, filters and history", { skip }, async (t) => {
  const firefox = await startFirefox();
  t.after(() => firefox.close());
  const page = await firefox.browser.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(addressOf("firefox:a"), { waitUntil: "load" });
  await untilText(page, "state", "live");
  await publishBytes("firefox:a", "[".repeat(10_000) + "]".repeat(10_000));
  await unfold(page, "[[[[");
  await publish("firefox:a", { n: 2 });
  await unfold(page, '{"n":2}');
  assert.match(await page.$eval(".tree", (one) => one.innerText), /n: 2/);
  await page.$eval(byId("history-load"), (button) => button.click());
  await untilFigure(page, "history-state", 2);
  await type(page, "filter", "n ==");
  await page.waitForFunction(
    (selector) => /\(107\)/.test(document.querySelector(selector).textContent),
    {},
    byId("filter-trouble"),
  );
  assert.deepEqual(complaints, []);
});
