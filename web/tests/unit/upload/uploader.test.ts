import assert from "node:assert/strict";
import { test } from "node:test";
import type { WebSocketLike } from "../../../client/src/environment.js";
import { UploadError, Uploader } from "../../../client/src/upload.js";

type Message = Record<string, unknown>;

/** A socket whose server the test plays. */
class FakeSocket implements WebSocketLike {
  readonly protocol = "";
  binaryType = "blob";
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  closeCode: number | undefined;
  /** Texts as objects, and the sizes of binary messages. */
  readonly sent: (Message | number)[] = [];

  constructor(
    readonly url: string,
    readonly subprotocols: string[],
  ) {}

  send(data: string | Blob | Uint8Array): void {
    if (typeof data === "string") {
      this.sent.push(JSON.parse(data) as Message);
    } else {
      this.sent.push(data instanceof Blob ? data.size : data.byteLength);
    }
  }

  close(code?: number): void {
    this.closeCode ??= code;
    this.readyState = 3;
  }

  open(windowBytes = 100, uploadsMax = 16): void {
    this.readyState = 1;
    this.say({ type: "hello", uploads_max: uploadsMax, window_bytes: windowBytes });
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) } as never);
  }

  drop(): void {
    this.readyState = 3;
    this.onclose?.({ code: 1006, reason: "" } as never);
  }

  /** Removes and returns what was sent. */
  take(): (Message | number)[] {
    return this.sent.splice(0);
  }
}

/** An uploader whose connections are `sockets`, in the order in which it opens them. */
function start(options = {}) {
  const sockets: FakeSocket[] = [];
  class Socket extends FakeSocket {
    constructor(url: string, subprotocols: string[]) {
      super(url, subprotocols);
      sockets.push(this);
    }
  }
  const environment = { WebSocket: Socket };
  const uploader = new Uploader("ws://example.org/", { environment, ...options });
  const add = (name: string, size: number, id?: string) =>
    uploader.add(new Blob([new Uint8Array(size)]), { name, ...(id !== undefined && { id }) });
  return { uploader, sockets, add };
}

/** Runs everything that is due. */
async function rest(): Promise<void> {
  for (let i = 0; i < 50; i += 1) {
    await new Promise(setImmediate);
  }
}

function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no failure",
    (error: unknown) => (error instanceof UploadError ? error.code : String(error)),
  );
}

test("a file is announced, sent in quarters of the window, and finished", async () => {
  const { sockets, add } = start();
  const states: string[] = [];
  const file = add("a", 120);
  file.on("state", (state) => states.push(state));
  await rest();
  const socket = sockets[0]!;
  assert.deepEqual(socket.subprotocols, ["linerate.upload.v1"]);
  socket.open(100);
  assert.deepEqual(socket.take(), [{ type: "start", upload: 1, name: "a", size: 120 }]);
  socket.say({ type: "ready", upload: 1, id: "5a", offset: 0 });
  await rest();
  const data = (offset: number) => ({ type: "data", upload: 1, offset });
  assert.deepEqual(socket.take(), [data(0), 25, data(25), 25, data(50), 25, data(75), 25]);
  assert.equal(file.id, "5a");
  socket.say({ type: "ack", upload: 1, bytes: 50 });
  assert.equal(file.acknowledged, 50);
  await rest();
  assert.deepEqual(socket.take(), [data(100), 20]);
  socket.say({ type: "done", upload: 1, result: { digest: "x" } });
  assert.deepEqual(await file.finished, { digest: "x" });
  assert.deepEqual(states, ["sending", "done"]);
  assert.equal(socket.closeCode, 1000);
});

test("at most `filesMax` files, and what the server allows, are sent at a time", async () => {
  for (const [filesMax, uploadsMax, expected] of [
    [2, 16, 2],
    [9, 3, 3],
  ] as const) {
    const { sockets, add, uploader } = start({ filesMax });
    for (const name of ["a", "b", "c", "d"]) {
      add(name, 1);
    }
    await rest();
    const socket = sockets[0]!;
    socket.open(100, uploadsMax);
    assert.equal(socket.take().length, expected);
    socket.say({ type: "ready", upload: 1, id: "5a", offset: 0 });
    socket.say({ type: "done", upload: 1, result: null });
    await rest();
    assert.ok(socket.take().some((it) => (it as Message)["upload"] === expected + 1));
    uploader.close();
  }
});

test("a lost upload continues where the server is", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { sockets, add } = start();
  const file = add("a", 100);
  await rest();
  sockets[0]!.open();
  sockets[0]!.say({ type: "ready", upload: 1, id: "5a", offset: 0 });
  await rest();
  sockets[0]!.drop();
  await rest();
  assert.equal(file.state, "waiting");
  t.mock.timers.tick(1_000);
  const again = sockets[1]!;
  again.open();
  assert.deepEqual(again.take(), [{ type: "resume", upload: 2, id: "5a", name: "a", size: 100 }]);
  again.say({ type: "ready", upload: 2, id: "5a", offset: 90 });
  await rest();
  assert.deepEqual(again.take(), [{ type: "data", upload: 2, offset: 90 }, 10]);
  again.say({ type: "done", upload: 2, result: 1 });
  assert.equal(await file.finished, 1);
});

test("an upload that the server has forgotten begins again, three times", async () => {
  const { sockets, add } = start();
  const file = add("a", 100, "old");
  await rest();
  const socket = sockets[0]!;
  socket.open();
  const gone = (upload: number) => ({ type: "error", upload, code: "unknown_upload", message: "" });
  socket.say(gone(1));
  assert.deepEqual(socket.take(), [
    { type: "resume", upload: 1, id: "old", name: "a", size: 100 },
    { type: "start", upload: 2, name: "a", size: 100 },
  ]);
  for (let number = 2; number <= 4; number += 1) {
    socket.say({ type: "ready", upload: number, id: "5a", offset: 0 });
    await rest();
    socket.say({ type: "error", upload: number, code: "expired", message: "" });
  }
  assert.equal(await failureOf(file.finished), "expired");
});

test("a paused file leaves its place to others, and continues", async () => {
  const { sockets, add } = start({ filesMax: 1 });
  const [one, two] = [add("one", 100), add("two", 1)];
  await rest();
  const socket = sockets[0]!;
  socket.open(40);
  socket.say({ type: "ready", upload: 1, id: "5a", offset: 0 });
  await rest();
  one.pause();
  assert.equal(one.state, "paused");
  assert.deepEqual(socket.take().at(-1), { type: "start", upload: 2, name: "two", size: 1 });
  socket.say({ type: "ack", upload: 1, bytes: 40 });
  await rest();
  assert.deepEqual(socket.take(), []);
  socket.say({ type: "ready", upload: 2, id: "a5", offset: 0 });
  socket.say({ type: "done", upload: 2, result: 2 });
  assert.equal(await two.finished, 2);
  one.resume();
  await rest();
  assert.deepEqual(socket.take()[0], { type: "data", upload: 1, offset: 40 });
  one.cancel();
});

test("a cancelled file is cancelled at the server, and the others continue", async () => {
  const { sockets, add } = start();
  const [one, two] = [add("one", 100), add("two", 100)];
  await rest();
  const socket = sockets[0]!;
  socket.open();
  socket.say({ type: "ready", upload: 1, id: "5a", offset: 0 });
  one.cancel();
  assert.equal(await failureOf(one.finished), "cancelled");
  assert.deepEqual(socket.take().at(-1), { type: "cancel", upload: 1 });
  assert.equal(socket.closeCode, undefined);
  // What the server had sent before it knew is ignored.
  socket.say({ type: "ack", upload: 1, bytes: 25 });
  two.cancel();
  assert.equal(socket.closeCode, 1000);
});

test("a refused file fails with the server's code, and the others continue", async () => {
  const { sockets, add } = start();
  const [one, two] = [add("../one", 1), add("two", 0)];
  await rest();
  const socket = sockets[0]!;
  socket.open();
  socket.say({ type: "error", upload: 1, code: "bad_name", message: "It contains /." });
  assert.equal(await failureOf(one.finished), "bad_name");
  socket.say({ type: "ready", upload: 2, id: "a5", offset: 0 });
  socket.say({ type: "done", upload: 2, result: null });
  assert.equal(await two.finished, null);
});

test("a server that cannot be reached fails all files", async () => {
  const { sockets, add } = start();
  const files = [add("a", 1), add("b", 1)];
  await rest();
  sockets[0]!.drop();
  assert.deepEqual(await Promise.all(files.map((file) => failureOf(file.finished))), [
    "unreachable",
    "unreachable",
  ]);
});

for (const [what, message] of [
  ["a message of another protocol", { type: "files" }],
  ["more acknowledged than sent", { type: "ack", upload: 1, bytes: 101 }],
  ["a negative number", { type: "ack", upload: 1, bytes: -1 }],
  ["an offset beyond the end", { type: "ready", upload: 1, id: "5a", offset: 101 }],
] as const) {
  test(`${what} ends the connection`, async () => {
    const { sockets, add } = start();
    const file = add("a", 100);
    await rest();
    sockets[0]!.open();
    sockets[0]!.say({ type: "ready", upload: 1, id: "5a", offset: 0 });
    await rest();
    sockets[0]!.say(message);
    assert.equal(await failureOf(file.finished), "not_understood");
    assert.equal(sockets[0]!.closeCode, 1000);
  });
}
