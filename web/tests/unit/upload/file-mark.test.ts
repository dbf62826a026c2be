import assert from "node:assert/strict";
import { test } from "node:test";
import { findMarked, marksOf } from "../../../client/src/upload/file-mark.js";

/** A file of numbered lines, so that no two places are alike. */
function log(name: string, lines: number, change = ""): File {
  const text = Array.from({ length: lines }, (_, i) => `line ${i}${change}\n`).join("");
  return new File([text], name);
}

test("files are recognized in any order and under other names", async () => {
  const [one, two] = [log("one.log", 50_000), log("two.log", 9, "!")];
  const marks = await marksOf([one, two]);
  assert.deepEqual(
    marks.map(({ name, size }) => [name, size]),
    [
      ["one.log", one.size],
      ["two.log", two.size],
    ],
  );
  const renamed = new File([await one.arrayBuffer()], "one.log.1");
  assert.deepEqual(await findMarked([two, renamed], marks), [renamed, two]);
});

test("a file that differs in its content or is shorter is not the same", async () => {
  const file = log("access.log", 50_000);
  const marks = await marksOf([file]);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const changed = bytes.slice();
  changed[changed.length - 1] = 0x20;
  for (const other of [changed, bytes.slice(0, -1), bytes.slice(1), new Uint8Array()]) {
    const found = await findMarked([new File([other], "access.log")], marks);
    assert.deepEqual(found, { missing: marks[0] });
  }
});

test("a log that has grown is cut to what it was", async () => {
  const file = log("access.log", 50_000);
  const marks = await marksOf([file]);
  const grown = new File([await file.arrayBuffer(), "one more line\n"], "access.log");
  const found = await findMarked([grown], marks);
  assert.ok(Array.isArray(found));
  const [cut] = found;
  assert.equal(cut?.size, file.size);
  assert.equal(await cut?.text(), await file.text());
});
