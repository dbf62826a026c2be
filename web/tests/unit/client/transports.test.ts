import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointsOf } from "../../../client/src/endpoints.js";
import { TransportChoice } from "../../../client/src/transports.js";

test("each transport gets one try until one works", () => {
  const choice = new TransportChoice(["websocket", "http_stream"]);
  assert.equal(choice.current, "websocket");
  assert.equal(choice.handleFailure(), true, "the next one is tried at once");
  assert.equal(choice.current, "http_stream");
  assert.equal(choice.handleFailure(), false, "all have failed");
  assert.equal(choice.current, "websocket");
});

test("a transport that has worked gets three tries", () => {
  const choice = new TransportChoice(["websocket", "http_stream"]);
  choice.handleSuccess();
  assert.deepEqual([choice.handleFailure(), choice.handleFailure()], [false, false]);
  assert.equal(choice.current, "websocket");
  choice.handleSuccess();
  assert.deepEqual([choice.handleFailure(), choice.handleFailure()], [false, false]);
  assert.equal(choice.handleFailure(), true);
  assert.equal(choice.current, "http_stream");
});

test("at least one transport is required", () => {
  assert.throws(() => new TransportChoice([]), TypeError);
});

test("a server, a prefix and an endpoint yield the same addresses", () => {
  const plain = {
    websocket: "ws://h:8080/connection/websocket",
    httpStream: "http://h:8080/connection/http_stream",
    emulation: "http://h:8080/emulation",
  };
  for (const url of ["http://h:8080", "ws://h:8080/", "ws://h:8080/connection/websocket"]) {
    assert.deepEqual(endpointsOf(url, undefined), plain, url);
  }
  const prefixed = endpointsOf("wss://h/rt/connection/websocket?x=1", undefined);
  assert.deepEqual(prefixed, {
    websocket: "wss://h/rt/connection/websocket?x=1",
    httpStream: "https://h/rt/connection/http_stream",
    emulation: "https://h/rt/emulation",
  });
});

test("in a page the address may be relative", () => {
  const page = "https://h";
  assert.equal(endpointsOf("", page).websocket, "wss://h/connection/websocket");
  assert.equal(endpointsOf("/rt", page).emulation, "https://h/rt/emulation");
});

test("an address without a server is refused", () => {
  assert.throws(() => endpointsOf("", undefined), TypeError);
  assert.throws(() => endpointsOf("/rt", undefined), TypeError);
  assert.throws(() => endpointsOf("ftp://h", undefined), /unsupported protocol ftp:/);
});
