// The code to copy: complete, quoted, and without secrets.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ClientAccess,
  type Kind,
  KINDS,
  kindsOf,
  PLACEHOLDER,
  snippet,
  type Subject,
} from "../../../channel/snippets.js";

const ALL = Object.keys(KINDS) as Kind[];
const OPEN: ClientAccess = {
  is_open: true,
  needs_token: false,
  protocols: ["native", "centrifuge", "socketio", "pusher", "phoenix", "raw", "sse"],
  pusher_key: "app-key",
};
const KEYED: ClientAccess = { ...OPEN, is_open: false, needs_token: true };
const TOKENS = {
  user: "playground",
  expires_in_s: 900,
  connection: "connection.to.ken",
  channel: "channel.to.ken",
  subscribed: "subscribed.to.ken",
};

function subject(more: Partial<Subject> = {}): Subject {
  const origin = "https://h.example:8443";
  return { channel: "news", origin, access: OPEN, wishes: {}, payload: '{"a":1}', ...more };
}

test("only kinds that the server has switched on are offered, and curl", () => {
  assert.deepEqual(kindsOf({ ...OPEN, protocols: ["raw", "native"] }), ["native", "raw", "curl"]);
  assert.deepEqual(kindsOf(OPEN), ALL);
});

test("an open server needs no token, and no key", () => {
  for (const kind of ALL) {
    const code = snippet(kind, subject());
    assert.doesNotMatch(code, /token|TOKEN|API-Key/, kind);
    assert.ok(code.includes("h.example"), kind);
  }
});

test("without tokens, a placeholder says how to get one", () => {
  for (const kind of ALL.filter((kind) => kind !== "pusher" && kind !== "curl")) {
    const code = snippet(kind, subject({ access: KEYED }));
    assert.ok(code.includes(PLACEHOLDER) && code.includes("linerate token"), kind);
  }
  const curl = snippet("curl", subject({ access: KEYED }));
  assert.ok(curl.includes('"X-API-Key: $LINERATE_AUTH_API_KEY"'), "the key stays in a variable");
});

test("each kind of client has the tokens that it can use", () => {
  const given = (kind: Kind) => {
    const code = snippet(kind, subject({ access: KEYED, tokens: TOKENS }));
    assert.doesNotMatch(code, /linerate token/, kind);
    return ["connection", "channel", "subscribed"].filter((name) =>
      code.includes(`${name}.to.ken`),
    );
  };
  for (const kind of ["native", "centrifuge", "phoenix", "raw", "sse"] as const) {
    assert.deepEqual(given(kind), ["connection", "channel"], kind);
  }
  assert.deepEqual(given("socketio"), ["subscribed"]);
  assert.deepEqual(given("pusher"), []);
  assert.deepEqual(given("curl"), []);
});

test("wishes are in the code where the protocol has them", () => {
  const wishes = { filter: 'level == "error" && a', batchIntervalMs: 200, conflate: "/key" };
  const native = snippet("native", subject({ wishes }));
  assert.ok(native.includes('filter: "level == \\"error\\" && a"'), native);
  assert.ok(native.includes("batchIntervalMs: 200") && native.includes('conflate: "/key"'));
  const query = /\?(.*)"/.exec(snippet("raw", subject({ wishes })))?.[1] ?? "";
  const parameters = new URLSearchParams(query);
  assert.equal(parameters.get("filter"), wishes.filter);
  assert.equal(parameters.get("batch_interval_ms"), "200");
  assert.equal(parameters.get("conflate"), "/key");
});

test("a hostile channel name stays within its string", () => {
  const channel = `"'\`\${x}\\</script>\u202e$(id)`;
  for (const kind of ALL) {
    const code = snippet(kind, subject({ channel }));
    assert.doesNotMatch(code, /<\/script>|\u202e/, kind);
  }
  const code = snippet("native", subject({ channel }));
  const literal = /subscribe\((".*")\)/.exec(code)?.[1] ?? "";
  assert.equal(JSON.parse(literal), channel);
  const url = /"(wss:.*)"/.exec(snippet("raw", subject({ channel })))?.[1] ?? "";
  assert.equal(new URL(url).searchParams.get("channel"), channel);
});

test("the shell gets one word, whatever is in it", () => {
  const channel = "it's;$(id)";
  const code = snippet("curl", subject({ channel, payload: '{"b":"it\'s"}' }));
  const word = /-d ('.*')\n/s.exec(code)?.[1] ?? "";
  const body = word.slice(1, -1).replaceAll(`'\\''`, "'");
  assert.deepEqual(JSON.parse(body), { channel, data: { b: "it's" } });
});

test("a room of Socket.IO is in the namespace that the channel names", () => {
  assert.match(
    snippet("socketio", subject({ channel: "/chat:lobby" })),
    /io\("https:\/\/h.example:8443\/chat"\)/,
  );
  assert.match(snippet("socketio", subject()), /io\("https:\/\/h.example:8443"\)/);
});

test("Pusher's client is told host, port and key, and where private channels are signed", () => {
  const code = snippet("pusher", subject({ channel: "private-a" }));
  for (const part of [
    '"app-key"',
    'wsHost: "h.example"',
    "wssPort: 8443",
    "forceTLS: true",
    "channelAuthorization",
  ]) {
    assert.ok(code.includes(part), part);
  }
  assert.match(
    snippet("pusher", subject({ origin: "http://h" })),
    /wsPort: 80,\n {2}forceTLS: false/,
  );
});
