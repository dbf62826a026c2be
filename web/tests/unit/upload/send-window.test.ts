import assert from "node:assert/strict";
import { test } from "node:test";
import { SendWindow } from "../../../client/src/upload/send-window.js";

/** Returns whether `promise` is settled once everything due now has run. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  await new Promise(setImmediate);
  return done;
}

test("there is room up to the window and not a byte more", async () => {
  const window = new SendWindow(10);
  assert.equal(await window.room(10), true);
  window.handleSent(6);
  assert.equal(await window.room(4), true);
  assert.equal(await settled(window.room(5)), false);
});

test("a sender may limit the bytes in flight below the window", async () => {
  const window = new SendWindow(10);
  window.handleSent(3);
  const room = window.room(2, 4);
  assert.equal(await settled(room), false);
  window.handleAcknowledgement(1);
  assert.equal(await room, true);
});

test("an acknowledgement that makes room ends the wait", async () => {
  const window = new SendWindow(10);
  window.handleSent(10);
  const room = window.room(4);
  assert.equal(window.handleAcknowledgement(3), true);
  assert.equal(await settled(room), false);
  assert.equal(window.handleAcknowledgement(4), true);
  assert.equal(await room, true);
});

test("shutting the window ends the wait with false", async () => {
  const window = new SendWindow(10);
  window.handleSent(10);
  const room = window.room(1);
  window.shut();
  assert.equal(await room, false);
  assert.equal(await window.room(1), false);
});

test("impossible totals are refused", () => {
  const window = new SendWindow(10);
  window.handleSent(5);
  assert.equal(window.handleAcknowledgement(6), false);
  assert.equal(window.handleAcknowledgement(5), true);
  assert.equal(window.handleAcknowledgement(4), false);
  assert.equal(window.acknowledged, 5);
});

test("a chunk that can never fit is an error of the caller", async () => {
  await assert.rejects(new SendWindow(10).room(11), RangeError);
  await assert.rejects(new SendWindow(10).room(5, 4), RangeError);
});

test("a paused window has no room until it continues, and is acknowledged meanwhile", async () => {
  const window = new SendWindow(10);
  window.handleSent(4);
  window.setPaused(true);
  const room = window.room(1);
  assert.equal(window.handleAcknowledgement(4), true);
  assert.equal(await settled(room), false);
  window.setPaused(false);
  assert.equal(await room, true);
  window.setPaused(true);
  const shut = window.room(1);
  window.shut();
  assert.equal(await shut, false);
});
