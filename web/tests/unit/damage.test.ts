import assert from "node:assert/strict";
import test from "node:test";
import { damageNote } from "../../logs/damage.js";

const damage = (file: string, reason: string, bytes: number, lines: number) => ({
  ...{ file, reason, bytes, lines },
});

test("whole files need no note", () => {
  assert.equal(damageNote([]), "");
});

test("the note says where each incomplete file ends and what was counted", () => {
  assert.equal(
    damageNote([damage("a.gz", "truncated", 1_234, 1), damage("b.zst", "corrupt", 1, 5_000)]),
    "a.gz ends early, after 1,234 bytes. The figures include its first line. " +
      "b.zst is damaged at or before 1 byte. The figures include its first 5,000 lines.",
  );
  const many = Array.from({ length: 5 }, (_, i) => damage(`${i}.gz`, "truncated", 9, 9));
  assert.match(damageNote(many), /2\.gz ends early.* 2 more are incomplete\.$/);
});
