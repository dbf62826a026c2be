// What the channel page counts and keeps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Meter } from "../../../channel/meter.js";
import { Recent } from "../../../channel/recent.js";

const sized = (length: number, name = "") => ({ bytes: { length }, name });

test("a meter has totals, and the rates since it was read last", () => {
  const meter = new Meter();
  meter.add(3, 30);
  meter.add(1, 10);
  assert.deepEqual(meter.take(2), { messages: 2, bytes: 20 });
  assert.deepEqual(meter.take(2), { messages: 0, bytes: 0 });
  assert.deepEqual([meter.messages, meter.bytes, meter.batches], [4, 40, 2]);
  assert.deepEqual(meter.take(0), { messages: 0, bytes: 0 });
  meter.reset();
  meter.add(1, 1);
  assert.deepEqual(meter.take(1), { messages: 1, bytes: 1 });
});

test("the latest messages are bounded in number", () => {
  const recent = new Recent<ReturnType<typeof sized>>(3, 1_000);
  recent.add([sized(1, "a"), sized(1, "b")]);
  recent.add([sized(1, "c"), sized(1, "d")]);
  assert.deepEqual(
    recent.items.map(({ name }) => name),
    ["d", "c", "b"],
  );
  recent.add(Array.from({ length: 100_000 }, (_, i) => sized(1, String(i))));
  assert.deepEqual(
    recent.items.map(({ name }) => name),
    ["99999", "99998", "99997"],
  );
});

test("the latest messages are bounded in bytes, but the newest one is kept", () => {
  const recent = new Recent<ReturnType<typeof sized>>(10, 100);
  recent.add([sized(60), sized(30), sized(10)]);
  assert.equal(recent.items.length, 3);
  recent.add([sized(1)]);
  assert.deepEqual(
    recent.items.map(({ bytes }) => bytes.length),
    [1, 10, 30],
  );
  recent.add([sized(1_000)]);
  assert.deepEqual(
    recent.items.map(({ bytes }) => bytes.length),
    [1_000],
  );
  recent.clear();
  recent.add([sized(100)]);
  assert.equal(recent.items.length, 1);
});
