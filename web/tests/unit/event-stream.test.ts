import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStream, type StreamEvent } from "../../shared/event-stream.js";

const TEXT =
  ': open\n\nevent: publication\ndata: {"a":\ndata:1}\nid: 5\n\r\ndata: x\r\n\r\nevent: none\n\ndata\n\n';
const EVENTS: StreamEvent[] = [
  { name: "publication", data: '{"a":\n1}' },
  { name: "message", data: "x" },
  { name: "message", data: "" },
];

function read(...pieces: string[]): StreamEvent[] {
  const events: StreamEvent[] = [];
  const stream = new EventStream((event) => events.push(event));
  pieces.forEach((piece) => stream.handleInput(piece));
  return events;
}

test("events are parsed whole, character by character, and split anywhere", () => {
  assert.deepEqual(read(TEXT), EVENTS);
  assert.deepEqual(read(...TEXT), EVENTS);
  for (let at = 0; at <= TEXT.length; at += 1) {
    assert.deepEqual(read(TEXT.slice(0, at), TEXT.slice(at)), EVENTS, `cut at ${at}`);
  }
});

test("an unfinished event is not reported", () => {
  assert.deepEqual(read("data: x\n"), []);
});
