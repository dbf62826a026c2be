import assert from "node:assert/strict";
import { test } from "node:test";
import type { WebSocketLike } from "../../client/src/environment.js";
import { LogSession, type Source } from "../../logs/log-session.js";
import type { Answer } from "../../logs/protocol.js";
import type { Summary } from "../../logs/summary.js";
import { SUMMARY } from "./summary.js";

const EVERYTHING = { from: null, until: null, filters: [] };
const MIB = 1024 * 1024;
const READY = { type: "ready", id: "5a5a", bytes: 0 };

/** The socket of an upload, whose server the test plays. */
class FakeSocket implements WebSocketLike {
  readonly protocol = "";
  binaryType = "blob";
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  closeCode: number | undefined;
  readonly sent: (string | Blob | Uint8Array)[] = [];

  send(message: string | Blob | Uint8Array): void {
    // Copied, as by a real socket: the reader reuses its buffers.
    this.sent.push(message instanceof Uint8Array ? message.slice() : message);
  }

  close(code?: number): void {
    this.closeCode ??= code;
    this.readyState = 3;
  }

  open(): void {
    this.readyState = 1;
    this.say({ type: "files", files: [], uploads: "allowed", kept_s: 600 });
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) } as never);
  }

  drop(reason = ""): void {
    this.readyState = 3;
    this.onclose?.({ reason } as never);
  }

  get texts(): unknown[] {
    return this.sent.flatMap((m) => (typeof m === "string" ? [JSON.parse(m)] : []));
  }

  get bytes(): number {
    const size = (m: string | Blob | Uint8Array) =>
      m instanceof Blob ? m.size : typeof m === "string" ? 0 : m.byteLength;
    return this.sent.reduce((sum, m) => sum + size(m), 0);
  }
}

class Listener {
  acknowledged: number[] = [];
  snapshots: [Summary, boolean][] = [];
  answers: Answer[] = [];
  connections: string[] = [];
  progress(bytes: number): void {
    this.acknowledged.push(bytes);
  }
  snapshot(summary: Summary, final: boolean): void {
    this.snapshots.push([summary, final]);
  }
  answer(answer: Answer): void {
    this.answers.push(answer);
  }
  connected(): void {
    this.connections.push("connected");
  }
  reconnecting(): void {
    this.connections.push("reconnecting");
  }
  reading(): void {}
}

function begin(size: number, forced?: "stream" | "slices") {
  const file = new File([new Uint8Array(size)], "access.log");
  return { file, ...beginWith([file], forced) };
}

/** A session whose connections are `sockets`, in the order in which it opens them. */
function beginWith(files: File[], forced?: "stream" | "slices") {
  return beginFrom({ kind: "files", files, format: "auto", rows: true }, forced);
}

function beginFrom(source: Source, forced?: "stream" | "slices") {
  const sockets: FakeSocket[] = [];
  const listener = new Listener();
  const connect = () => {
    sockets.push(new FakeSocket());
    return sockets.at(-1)!;
  };
  const upload = new LogSession(source, connect, "", listener, forced);
  return { socket: sockets[0]!, sockets, listener, upload };
}

/** Runs everything that is due. */
async function rest(): Promise<void> {
  for (let i = 0; i < 50; i += 1) {
    await new Promise(setImmediate);
  }
}

test("the name and size are sent first, and no bytes before the server is ready", async () => {
  const { socket, upload } = begin(3);
  socket.open();
  await rest();
  assert.deepEqual(socket.texts, [
    {
      type: "start",
      files: [{ name: "access.log", size: 3 }],
      format: "auto",
      rows: true,
    },
  ]);
  assert.equal(socket.bytes, 0);
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  assert.equal(socket.bytes, 3);
  assert.deepEqual(socket.texts[1], { type: "finish" });
  upload.cancel();
});

for (const way of ["slices", "stream"] as const) {
  test(`at most the window is in flight (${way})`, async () => {
    const { socket, upload } = begin(20 * MIB, way);
    socket.open();
    socket.say({ ...READY, window_bytes: 8 * MIB });
    let acknowledged = 0;
    while (acknowledged < 20 * MIB) {
      await rest();
      assert.ok(socket.bytes > acknowledged, "the upload continues");
      assert.ok(socket.bytes - acknowledged <= 8 * MIB);
      acknowledged = Math.min(socket.bytes, acknowledged + 3 * MIB);
      socket.say({ type: "ack", bytes: acknowledged });
    }
    await rest();
    assert.equal(socket.bytes, 20 * MIB);
    assert.deepEqual(socket.texts.at(-1), { type: "finish" });
    socket.say({ type: "snapshot", final: true, summary: SUMMARY });
    assert.equal(socket.closeCode, undefined, "questions may follow");
    upload.cancel();
  });
}

test("a window smaller than a chunk is respected", async () => {
  const { socket, upload } = begin(100);
  socket.open();
  socket.say({ ...READY, window_bytes: 7 });
  await rest();
  assert.equal(socket.bytes, 7);
  upload.cancel();
});

test("snapshots and progress are passed on", async () => {
  const { socket, listener, upload } = begin(3);
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  socket.say({ type: "ack", bytes: 3 });
  socket.say({ type: "snapshot", final: false, summary: SUMMARY });
  assert.deepEqual(listener.acknowledged, [0, 3]);
  assert.deepEqual(listener.snapshots, [[SUMMARY, false]]);
  upload.cancel();
});

test("cancelling tells the server and stops sending", async () => {
  const { socket, upload } = begin(100);
  socket.open();
  socket.say({ ...READY, window_bytes: 10 });
  await rest();
  socket.say({ type: "ack", bytes: 4 });
  upload.cancel();
  assert.deepEqual(await upload.ended, { kind: "cancelled", acknowledged: 4 });
  assert.deepEqual(socket.texts.at(-1), { type: "cancel" });
  const { bytes } = socket;
  await rest();
  assert.equal(socket.bytes, bytes);
});

test("stopping keeps the session for queries, also after its connection was lost", async () => {
  const { socket, upload, listener } = begin(100);
  socket.open();
  socket.say({ ...READY, window_bytes: 10 });
  await rest();
  upload.stop();
  assert.deepEqual(socket.texts.at(-1), { type: "stop" });
  const { bytes } = socket;
  socket.say({ type: "ack", bytes: 10 });
  await rest();
  assert.equal(socket.bytes, bytes, "nothing more is sent");
  socket.say({ type: "snapshot", final: true, summary: SUMMARY });
  assert.deepEqual(listener.snapshots, [[SUMMARY, true]]);
  const question = {
    type: "query",
    seq: 1,
    query: { from: null, until: null, filters: [] },
  } as const;
  upload.ask(question);
  assert.deepEqual(socket.texts.at(-1), question);
  upload.cancel();
});

test("stopping before the server is ready ends the session", async () => {
  const { upload } = begin(100);
  upload.stop();
  assert.deepEqual(await upload.ended, { kind: "cancelled", acknowledged: 0 });
});

test("a connection that never opens is unreachable", async () => {
  const { socket, upload } = begin(3);
  socket.drop();
  assert.deepEqual(await upload.ended, {
    kind: "failed",
    failure: { reason: "unreachable" },
    acknowledged: 0,
  });
});

test("an upload continues where the server left off", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { socket, sockets, upload, listener } = begin(100, "slices");
  socket.open();
  socket.say({ ...READY, window_bytes: 60 });
  await rest();
  socket.say({ type: "ack", bytes: 20 });
  await rest();
  socket.drop();
  await rest();
  t.mock.timers.tick(1_000);
  const again = sockets[1]!;
  again.open();
  assert.deepEqual(again.texts, [{ type: "resume", id: "5a5a" }]);
  // More had arrived than was acknowledged before the connection was lost.
  again.say({ ...READY, window_bytes: 60, bytes: 30 });
  await rest();
  assert.equal(again.bytes, 60);
  again.say({ type: "ack", bytes: 90 });
  await rest();
  assert.equal(again.bytes, 70);
  assert.deepEqual(again.texts.at(-1), { type: "finish" });
  assert.deepEqual(listener.connections, ["connected", "reconnecting", "connected"]);
  upload.cancel();
});

test("an upload that the server no longer knows ends", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { socket, sockets, upload } = begin(3);
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  socket.say({ type: "ack", bytes: 2 });
  socket.drop();
  await rest();
  t.mock.timers.tick(1_000);
  sockets[1]!.open();
  sockets[1]!.say({ type: "error", code: "unknown_session", message: "no such upload" });
  assert.deepEqual(await upload.ended, {
    kind: "failed",
    failure: { reason: "dropped" },
    acknowledged: 2,
  });
});

test("a query left unanswered by a lost connection is sent again", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { socket, sockets, upload, listener } = begin(3);
  const question = (seq: number) => ({ type: "query", seq, query: EVERYTHING }) as const;
  socket.open();
  upload.ask(question(1));
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  upload.ask(question(2));
  socket.say({ type: "snapshot", final: true, summary: SUMMARY });
  socket.say({ type: "figures", seq: 1, summary: SUMMARY });
  socket.drop();
  await rest();
  t.mock.timers.tick(1_000);
  const again = sockets[1]!;
  again.open();
  again.say({ ...READY, window_bytes: 16, bytes: 3 });
  await rest();
  assert.deepEqual(again.texts, [{ type: "resume", id: "5a5a" }, question(2)]);
  assert.deepEqual(
    listener.answers.map(({ seq }) => seq),
    [1],
  );
  upload.cancel();
});

test("after the final figures the server may drop the log", async () => {
  const { socket, upload } = begin(3);
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  socket.say({ type: "ack", bytes: 3 });
  socket.say({ type: "snapshot", final: true, summary: SUMMARY });
  socket.say({ type: "error", code: "idle", message: "nothing was asked for 600 s" });
  assert.deepEqual(await upload.ended, { kind: "forgotten" });
});

test("several files are sent back to back", async () => {
  const files = [5, 1, 7].map((size, i) => new File([new Uint8Array(size).fill(i)], `${i}.log`));
  const { socket, upload } = beginWith(files, "slices");
  socket.open();
  socket.say({ ...READY, window_bytes: 100 });
  await rest();
  const chunks = socket.sent.filter((message) => message instanceof Blob);
  const bytes = await new Blob(chunks).bytes();
  assert.deepEqual([...bytes], [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2]);
  upload.cancel();
});

test("a connection that ends because the file is unreadable is reported as such", async () => {
  const { socket, upload, file } = begin(3);
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  file.slice = () => {
    throw new DOMException("gone", "NotReadableError");
  };
  socket.drop();
  const outcome = await upload.ended;
  assert.deepEqual(outcome.kind === "failed" && outcome.failure, { reason: "unreadable" });
});

test("a file that cannot be read during the upload is unreadable", async () => {
  const { socket, upload, file } = begin(3);
  file.slice = () => {
    throw new DOMException("gone", "NotReadableError");
  };
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  const outcome = await upload.ended;
  assert.deepEqual(outcome.kind === "failed" && outcome.failure, { reason: "unreadable" });
});

test("an internal error of the page does not blame the file", async () => {
  const { socket, upload, file } = begin(3);
  file.slice = () => {
    throw new TypeError("no such thing");
  };
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  const outcome = await upload.ended;
  assert.equal(outcome.kind === "failed" && outcome.failure.reason, "bug");
});

test("the server's refusal is passed on verbatim", async () => {
  const { socket, upload } = begin(3);
  socket.open();
  socket.say({ type: "error", code: "too_large", message: "at most 2 bytes" });
  socket.drop();
  const outcome = await upload.ended;
  assert.deepEqual(outcome.kind === "failed" && outcome.failure, {
    reason: "refused",
    code: "too_large",
    message: "at most 2 bytes",
  });
});

for (const [what, message] of [
  ["an unknown message", { type: "hello" }],
  ["an acknowledgement of what wasn't sent", { type: "ack", bytes: 4 }],
  ["a second ready", { ...READY, window_bytes: 16 }],
] as const) {
  test(`${what} ends the upload`, async () => {
    const { socket, upload } = begin(3);
    socket.open();
    socket.say({ ...READY, window_bytes: 16 });
    await rest();
    socket.say(message);
    const outcome = await upload.ended;
    assert.equal(outcome.kind === "failed" && outcome.failure.reason, "not_understood");
    assert.equal(socket.closeCode, 1000);
  });
}

test("the key is sent only if the server asks for it, and only once", async () => {
  const { socket, upload } = begin(3);
  socket.readyState = 1;
  socket.say({ type: "files", files: [], uploads: "key", kept_s: 600 });
  await rest();
  assert.deepEqual(socket.texts, [{ type: "key", key: "" }]);
  socket.say({ type: "files", files: [], uploads: "key", kept_s: 600 });
  socket.say({ type: "files", files: [], uploads: "allowed", kept_s: 600 });
  await rest();
  assert.deepEqual(
    socket.texts.map((text) => (text as { type: string }).type),
    ["key", "start"],
  );
  upload.cancel();
});

test("an upload that was interrupted by a reload continues at the server's byte", async () => {
  const files = [new File(["abcdef"], "access.log")];
  const { socket, listener, upload } = beginFrom(
    { kind: "files", files, format: "auto", rows: true, resume: "5a5a" },
    "slices",
  );
  socket.open();
  socket.say({ ...READY, window_bytes: 16, bytes: 4 });
  await rest();
  assert.deepEqual(socket.texts, [{ type: "resume", id: "5a5a" }, { type: "finish" }]);
  assert.equal(socket.bytes, 2);
  assert.deepEqual(listener.acknowledged, [4]);
  upload.cancel();
});

test("an interrupted upload can be ended without its files", async () => {
  const { socket, listener, upload } = beginFrom({ kind: "end", id: "5a5a" });
  socket.open();
  socket.say({ ...READY, window_bytes: 16, bytes: 4 });
  socket.say({ type: "snapshot", final: true, summary: SUMMARY });
  assert.deepEqual(socket.texts, [{ type: "resume", id: "5a5a" }, { type: "stop" }]);
  assert.deepEqual(listener.snapshots, [[SUMMARY, true]]);
  upload.leave();
  assert.equal(socket.closeCode, undefined, "the server keeps what is closed without a code");
});

test("a log is viewed by its name, again after the connection was lost", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { socket, sockets, upload } = beginFrom({ kind: "view", name: "a5a5" });
  socket.open();
  socket.say({ ...READY, window_bytes: 0 });
  socket.drop();
  await rest();
  t.mock.timers.tick(1_000);
  sockets[1]!.open();
  assert.deepEqual(sockets[1]!.texts, [{ type: "view", name: "a5a5" }]);
  sockets[1]!.say({ type: "error", code: "unknown_session", message: "no such upload" });
  assert.deepEqual(await upload.ended, { kind: "gone", keptSeconds: 600 });
});

test("an upload that is continued on another page ends here", async () => {
  const { socket, sockets, upload } = begin(3);
  socket.open();
  socket.say({ ...READY, window_bytes: 16 });
  await rest();
  socket.drop("resumed elsewhere");
  assert.deepEqual(await upload.ended, { kind: "taken" });
  assert.equal(sockets.length, 1);
});
