import assert from "node:assert/strict";
import test from "node:test";
import { visible } from "../../logs/visible.js";

test("characters that change the direction of text are escaped", () => {
  assert.equal(visible("/a\u202egpj.exe"), "/a\\u{202e}gpj.exe");
  assert.equal(visible("\u2067\u061c\u0007\u009b"), "\\u{2067}\\u{61c}\\u{7}\\u{9b}");
});

test("other text is left as it is", () => {
  for (const text of ["", "/größe/€", "שלום", "a b", "😀"]) {
    assert.equal(visible(text), text);
  }
});
