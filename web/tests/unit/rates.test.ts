import assert from "node:assert/strict";
import { test } from "node:test";
import { NotUnderstood } from "../../logs/fields.js";
import { parseServerMessage } from "../../logs/protocol.js";
import { curveEnds } from "../../logs/rates-chart.js";

const EFFECT = { allowed: 60, keys: 1, requests: 9, over: 3, people: 0, people_over: 0 };
const LIMITED = {
  ...{ value: "192.0.2.7", name: "", requests: 9, over: 3, times: 1, first: -5, last: 7 },
  ...{ peak: 9, peak_at: 7, looks_like_people: false },
};
const RATES = {
  ...{ requests: 9, without_key: 0, keys: 1, people: 0, effect: EFFECT, limited: [LIMITED] },
  ...{ curve: [EFFECT, { ...EFFECT, allowed: 70, keys: 0 }], time_step_s: 1 },
};

function parsed(change: object) {
  const rates = { ...RATES, ...change };
  return parseServerMessage(JSON.stringify({ type: "rates", seq: 3, rates }));
}

test("limits are parsed, with times before 1970 and with rules", () => {
  assert.deepEqual(parsed({}), { type: "rates", seq: 3, rates: RATES });
  const message = parsed({ rules: "# none" });
  assert.equal(message.type === "rates" && message.rates.rules, "# none");
});

test("incomplete limits are not understood", () => {
  for (const change of [
    { effect: {} },
    { limited: [{ ...LIMITED, over: "3" }] },
    { curve: null },
    { rules: 7 },
  ]) {
    assert.throws(() => parsed(change), NotUnderstood);
  }
});

test("the curve is labelled with its ends", () => {
  assert.deepEqual(curveEnds(RATES.curve), ["60", "70", "1"]);
  assert.deepEqual(curveEnds([]), ["0", "0", "0"]);
});
