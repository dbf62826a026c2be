import assert from "node:assert/strict";
import { test } from "node:test";
import { type Block, readBlocks } from "../../../client/src/blocks.js";
import { ProtocolError } from "../../../client/src/linerate.js";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Concatenates numbers and texts as bytes. */
function bytesOf(...parts: (number | string)[]): Uint8Array {
  return Uint8Array.from(
    parts.flatMap((part) => (typeof part === "number" ? [part] : [...ENCODER.encode(part)])),
  );
}

/** Returns the blocks with their payloads as text. */
function read(bytes: Uint8Array) {
  return [...readBlocks(bytes)].map((block: Block) => ({
    ...block,
    items: block.items.map((item) => ({ ...item, payload: DECODER.decode(item.payload) })),
  }));
}

const plain = (payload: string, offset?: number) => ({
  offset,
  source: undefined,
  extras: {},
  payload,
});

test("a block without flags contains only payloads", () => {
  const [block] = read(bytesOf(7, 0x00, 2, 4, "Spam", 0));
  assert.deepEqual(block, {
    channelId: 7,
    conflated: 0,
    gap: undefined,
    items: [plain("Spam"), plain("")],
  });
});

test("offsets continue from the first and skip omitted ones", () => {
  const [dense] = read(bytesOf(7, 0x01, 0x80, 0x01, 2, 1, "a", 1, "b"));
  assert.deepEqual(dense?.items, [plain("a", 128), plain("b", 129)]);
  const [sparse] = read(bytesOf(7, 0x09, 5, 3, 0, 1, "a", 3, 1, "b", 0, 1, "c"));
  assert.deepEqual(sparse?.items, [plain("a", 5), plain("b", 9), plain("c", 10)]);
});

test("conflated and missed publications are counted", () => {
  const [block] = read(bytesOf(7, 0x07, 9, 4, 3, 1, 1, 1, "a"));
  assert.equal(block?.conflated, 4);
  assert.deepEqual(block?.gap, { missed: 2, cause: 1 });
  const [unknown] = read(bytesOf(7, 0x04, 0, 2, 0));
  assert.deepEqual(unknown?.gap, { missed: undefined, cause: 2 });
});

test("sources and extras precede each payload", () => {
  const extras = '{"tags":{"k":"v"}}';
  const [block] = read(bytesOf(7, 0x30, 2, 3, "a:b", extras.length, extras, 1, "x", 0, 0, 1, "y"));
  assert.deepEqual(block?.items, [
    { offset: undefined, source: "a:b", extras: { tags: { k: "v" } }, payload: "x" },
    plain("y"),
  ]);
});

test("a frame may contain several blocks", () => {
  const blocks = read(bytesOf(1, 0, 1, 1, "a", 2, 0, 1, 1, "b"));
  assert.deepEqual(
    blocks.map(({ channelId }) => channelId),
    [1, 2],
  );
});

test("numbers are exact up to 2^53 - 1 and refused above", () => {
  const [block] = read(bytesOf(7, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0));
  assert.equal(block?.items[0]?.offset, Number.MAX_SAFE_INTEGER);
  const beyond = bytesOf(7, 0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 0);
  assert.throws(() => read(beyond), /above 2\^53/);
});

test("a block that is truncated anywhere is refused", () => {
  const whole = bytesOf(7, 0x3f, 5, 4, 3, 1, 2, 0, 1, "s", 2, "{}", 1, "a", 1, 0, 0, 1, "b");
  assert.equal(read(whole)[0]?.items.length, 2);
  for (let end = 1; end < whole.length; end += 1) {
    assert.throws(() => read(whole.subarray(0, end)), ProtocolError, `cut at ${end}`);
  }
});

test("unknown flags are refused", () => {
  assert.throws(() => read(bytesOf(7, 0x40, 0)), ProtocolError);
});

test("a claimed count does not allocate memory", () => {
  const claims = bytesOf(7, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f);
  assert.throws(() => read(claims), ProtocolError);
});
