import assert from "node:assert/strict";
import { test } from "node:test";
import { explain, gone, objection, otherFile } from "../../logs/trouble.js";

const FILE = { name: "access.log", size: 99_999_999 };

test("a lost connection shows the progress and offers a retry", () => {
  const { detail, retry } = explain({ reason: "dropped" }, 12_345_678, FILE);
  assert.match(detail, /12,345,678 of 99,999,999 bytes/);
  assert.equal(retry, true);
});

test("a changed file has to be chosen again", () => {
  assert.equal(explain({ reason: "unreadable" }, 5, FILE).retry, false);
});

test("the reason why a file is not a log is shown", () => {
  const failure = {
    reason: "refused",
    code: "not_a_log",
    message: "no line is a request",
  } as const;
  const { title, detail, retry } = explain(failure, 0, FILE);
  assert.equal(title, "This is not an access log in a known format");
  assert.equal(detail, "No line is a request.");
  assert.equal(retry, false);
});

test("for a file that is too large, no retry is offered", () => {
  const failure = { reason: "refused", code: "too_large", message: "over the limit" } as const;
  assert.equal(explain(failure, 7, FILE).retry, false);
  assert.equal(explain({ ...failure, code: "protocol" }, 7, FILE).retry, true);
});

test("only an empty file is refused before it is sent", () => {
  const [full, empty] = [
    { name: "a.log", size: 1 },
    { name: "b.log", size: 0 },
  ];
  assert.match(objection([full, empty])?.detail ?? "", /^b\.log/);
  assert.equal(objection([full, full]), null);
});

test("a full server or a wrong key is reported instead of the progress", () => {
  for (const [code, retry] of [
    ["busy", true],
    ["keys_limited", true],
    ["no_memory", true],
    ["off", false],
    ["wrong_key", false],
  ] as const) {
    const trouble = explain({ reason: "refused", code, message: "for a reason" }, 0, FILE);
    assert.notEqual(trouble.title, "The server stopped reading");
    assert.equal(trouble.detail, "For a reason.");
    assert.equal(trouble.retry, retry, code);
  }
});

test("a log that is gone says for how long logs are kept", () => {
  assert.match(gone(600).detail, /^It keeps a log while .* and for 10 minutes after .* choose it/);
  assert.match(gone(90).detail, /for 90 seconds after/);
  assert.match(gone(0).detail, /^It keeps a log only while the page that sends it is open\. /);
});

test("a file that is not the interrupted one says what is needed", () => {
  assert.match(otherFile(FILE).detail, /needs access\.log with its 99,999,999 bytes/);
});
