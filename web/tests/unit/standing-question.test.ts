import assert from "node:assert/strict";
import { test } from "node:test";
import type { SideQuestion } from "../../logs/enquiry.js";
import { StandingQuestion } from "../../logs/standing-question.js";

const question = (from: number): SideQuestion => ({
  type: "latency",
  query: { from, until: null, filters: [] },
});

test("a question is asked again only if it changes or lines have arrived", () => {
  const asked: (SideQuestion | null)[] = [];
  const standing = new StandingQuestion((it) => asked.push(it));
  assert.equal(standing.want(null, 5, true), false, "nothing to withdraw");
  assert.equal(standing.want(question(1), 5, true), true);
  assert.equal(standing.want(question(1), 5, true), false);
  assert.equal(standing.want(question(2), 5, true), true);
  assert.equal(standing.want(question(2), 6, false), false, "lines arrive all the time");
  assert.equal(standing.want(question(2), 6, true), true, "the last lines have arrived");
  assert.equal(standing.want(null, 6, true), true);
  assert.deepEqual(asked, [question(1), question(2), question(2), null]);
});
