import assert from "node:assert/strict";
import { test } from "node:test";
import { partsOf } from "../../logs/highlight.js";

const marked = (text: string, search: string) =>
  partsOf(text, search)
    .map((part) => (part.isMatch ? `[${part.text}]` : part.text))
    .join("");

test("matches are marked in upper and lower case", () => {
  assert.equal(marked("GET /Admin/admin", "ADMIN"), "GET /[Admin]/[admin]");
  assert.equal(marked("/Äpfel", "äPFEL"), "/[Äpfel]");
  assert.equal(marked("abc", "x"), "abc");
  assert.equal(marked("abc", ""), "abc");
  assert.deepEqual(partsOf("", ""), []);
  assert.deepEqual(partsOf("aa", "a"), [
    { text: "a", isMatch: true },
    { text: "a", isMatch: true },
  ]);
});

test("a search is not a pattern", () => {
  assert.equal(marked("a.b(c) [d]", "."), "a[.]b(c) [d]");
  assert.equal(marked("a.b(c)|", "b(c)|"), "a.[b(c)|]");
  assert.equal(marked("a\\d", "\\d"), "a[\\d]");
});
