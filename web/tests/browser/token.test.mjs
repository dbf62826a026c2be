// The overview of a server that requires a token.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { byId, focused, openPage, startBrowser, startServer, tabTo, textOf } from "./support.mjs";

const SECRET = "a secret of this test, long enough";
const SETTINGS = [
  `auth.token.hmac_secret_key=${SECRET}`,
  "channel.allow_subscribe=true",
  "channel.allow_publish=true",
];

let chromium, server;

before(async () => {
  server = await startServer({ flags: SETTINGS.flatMap((setting) => ["--set", setting]) });
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

function tokenOf(user) {
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1_000) + 600;
  const text = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded({ sub: user, exp })}`;
  return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

const untilAsked = (page, pattern) =>
  page.waitForFunction(
    (form, note, source) =>
      !document.querySelector(form)?.hidden &&
      new RegExp(source).test(document.querySelector(note).textContent),
    {},
    byId("token-form"),
    byId("token-note"),
    pattern.source,
  );

test("the page asks for a token, uses it in this tab, and forgets it", async () => {
  const { page } = await openPage(chromium.browser, server.url);
  await untilAsked(page, /^This server requires a token: /);
  await tabTo(page, "token");
  await page.keyboard.type("no token");
  await page.keyboard.press("Enter");
  await untilAsked(page, /^The server refuses this token: /);

  await page.type(byId("token"), tokenOf("ada"));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => {
    const cards = [...document.querySelectorAll(".client")];
    return cards.length === 3 && cards.every((card) => card.dataset.state === "subscribed");
  });
  assert.match(await textOf(page, "token-note"), /^This page connects with the token/);
  await page.waitForFunction(
    (selector) => Number(document.querySelector(selector).dataset.value) > 0,
    {},
    byId("publisher-state"),
  );
  assert.equal(await textOf(page, "demo-trouble"), "");

  await page.focus(byId("forget-token"));
  assert.equal(await focused(page), "forget-token");
  await page.keyboard.press("Enter");
  await untilAsked(page, /^This server requires a token: /);
  await page.close();
});
