// What the channel page says about errors, and how it reads tags.

import assert from "node:assert/strict";
import { test } from "node:test";
import { explain, placeOf } from "../../../channel/explain.js";
import { parseTags } from "../../../channel/tags.js";
import { ServerError, Unsubscribed } from "../../../client/src/linerate.js";

const denied = new ServerError(103, "permission denied");

test("a refusal names the setting and where it belongs", () => {
  assert.match(
    explain("history", "news", denied),
    /Set allow_history = true in \[channel\]\. .*\(103\)/,
  );
  assert.match(
    explain("presence", "news:a", denied, ["news"]),
    /allow_presence = true in the \[\[namespace\]\] "news"\./,
  );
  assert.match(
    explain("publish", "news:a", denied, []),
    /allow_publish = true, .* in \[channel\], because there is no \[\[namespace\]\] "news"\./,
  );
  const unsubscribed = new Unsubscribed(103, "permission denied");
  assert.match(
    explain("subscribe", "a", unsubscribed),
    /Set allow_subscribe = true, and allow_anon/,
  );
});

test("what a channel lacks is named with its setting", () => {
  const lacking = new ServerError(108, "not available");
  assert.match(explain("history", "a", lacking), /keeps no history\. Set history_size/);
  assert.match(
    explain("presence", "a", lacking),
    /not tracked in this channel\. Set presence = true/,
  );
});

test("forbidden options are named with the setting that allows them", () => {
  for (const [what, setting] of [
    ["filters", "allow_filter"],
    ["batch intervals", "allow_batch_override"],
    ["other conflation settings", "allow_conflate_override"],
  ]) {
    const message = `permission denied: ${what} are not allowed in this channel`;
    const said = explain("subscribe", "a", new Unsubscribed(103, message));
    assert.ok(said.includes(`set ${setting} = true in [channel]`), said);
  }
});

test("other errors are shown as the server words them", () => {
  const wrong = new Unsubscribed(107, "bad request: column 3: found =, expected ==");
  assert.match(explain("subscribe", "a", wrong), /column 3: found =, expected == \(107\)/);
  assert.equal(explain("publish", "a", new Error("no connection")), "no connection");
});

test("a namespace of hostile characters is quoted", () => {
  assert.equal(placeOf('a"b:c', ['a"b']), 'in the [[namespace]] "a\\"b"');
  assert.equal(placeOf(":c", []), "in [channel]");
});

test("tags are pairs; a name like __proto__ is a name", () => {
  assert.deepEqual(parseTags(" event=created, level = error,"), {
    event: "created",
    level: "error",
  });
  assert.deepEqual(parseTags("a=b=c"), { a: "b=c" });
  assert.equal(JSON.stringify(parseTags("__proto__=x")), '{"__proto__":"x"}');
  assert.deepEqual(parseTags(""), {});
  assert.throws(() => parseTags("created"), /The tag "created" must have the form name=value/);
});
