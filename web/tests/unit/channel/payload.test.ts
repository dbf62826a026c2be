// Payloads of hostile and other publishers, as they are shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { children, CHILDREN_STEP, label } from "../../../channel/json-tree.js";
import {
  inFull,
  preview,
  previewOf,
  PREVIEW_MAX,
  read,
  TEXT_MAX,
  visible,
} from "../../../channel/payload.js";

const encode = (text: string) => new TextEncoder().encode(text);

function jsonOf(text: string): unknown {
  const payload = read(encode(text));
  assert.equal(payload.kind, "json");
  return payload.kind === "json" ? payload.value : undefined;
}

test("payloads are JSON, text or bytes", () => {
  assert.deepEqual(read(encode('{"a":1}')), { kind: "json", value: { a: 1 } });
  assert.deepEqual(read(encode("{a:1}")), { kind: "text", text: "{a:1}" });
  assert.deepEqual(read(Uint8Array.of(0xff, 0x00)), { kind: "binary" });
  assert.deepEqual(read(new Uint8Array()), { kind: "text", text: "" });
});

test("characters that are invisible or reorder others are shown as escapes", () => {
  assert.equal(visible("user\u202egnp.exe"), "user\\u202egnp.exe");
  assert.equal(visible("a\u0000b\u200bc\u2066d\ufeff"), "a\\u0000b\\u200bc\\u2066d\\ufeff");
  assert.equal(visible("two\nlines\tκόσμε 🦀"), "two\nlines\tκόσμε 🦀");
  assert.equal(preview("two\n  lines"), "two lines");
  assert.equal(label("x\u202ey"), '"x\\u202ey"');
});

test("markup stays text", () => {
  const markup = '<img src=x onerror="alert(1)">';
  assert.equal(previewOf(encode(markup)), markup);
  assert.equal(label(markup), JSON.stringify(markup));
});

test("bytes are shown in hexadecimal, in lines up to a limit", () => {
  assert.equal(previewOf(Uint8Array.of(0xff, 0x01)), "ff 01");
  assert.match(previewOf(new Uint8Array(100).fill(0xfe)), /^(fe ){24}…$/);
  assert.match(inFull(Uint8Array.of(0x41, 0xff)), /^000000 {2}41 ff {43} A·$/);
  const lines = inFull(new Uint8Array(2_000).fill(0xfe)).split("\n");
  assert.equal(lines.length, 65);
  assert.equal(lines.at(-1), "… (976 more bytes)");
});

test("a string of a mebibyte is cut wherever it is shown", () => {
  const text = "é".repeat(1_048_576);
  const bytes = encode(text);
  assert.ok(previewOf(bytes).length <= PREVIEW_MAX + 10);
  assert.ok(inFull(bytes).length < TEXT_MAX + 100);
  const shown = label(jsonOf(JSON.stringify(text)));
  assert.ok(shown.length < 2_100, String(shown.length));
  assert.match(shown, /… \(1,046,576 more characters\)$/);
});

test("a preview that ends within a character does not spoil the next one", () => {
  const long = encode(`${"x".repeat(PREVIEW_MAX - 1)}é and more`);
  assert.match(previewOf(long), /^x+ …$/);
  assert.equal(previewOf(encode("next")), "next");
});

test("JSON of 10,000 levels is read, and unfolded level by level", () => {
  let value = jsonOf("[".repeat(10_000) + "]".repeat(10_000));
  for (let level = 1; level < 10_000; level += 1) {
    assert.equal(label(value), "[ 1 element ]");
    [[, value]] = children(value as object, 0, CHILDREN_STEP) as [[string, unknown]];
  }
  assert.equal(label(value), "[]");
  // What the browser refuses to read is shown as text.
  assert.ok(["json", "text"].includes(read(encode("[".repeat(1_000_000))).kind));
});

test("a list of a hundred thousand elements is unfolded in steps", () => {
  const value = jsonOf(`[${"0,".repeat(99_999)}0]`) as number[];
  assert.equal(label(value), "[ 100,000 elements ]");
  assert.equal(children(value, 0, CHILDREN_STEP).length, 100);
  assert.deepEqual(children(value, 99_950, CHILDREN_STEP).at(-1), ["99999", 0]);
});

test("keys of prototypes are keys like any other", () => {
  const value = jsonOf('{"__proto__":{"polluted":true},"constructor":1,"toString":2}') as object;
  assert.equal(label(value), "{ 3 fields }");
  assert.deepEqual(children(value, 0, CHILDREN_STEP), [
    ["__proto__", { polluted: true }],
    ["constructor", 1],
    ["toString", 2],
  ]);
  assert.equal("polluted" in {}, false);
});
