// A simulated world for the client: a clock that tests advance, and sockets whose server they play.

import assert from "node:assert/strict";
import { Client, type ClientOptions } from "../../../client/src/linerate.js";
import type { Environment, WebSocketLike } from "../../../client/src/environment.js";

type Message = Record<string, unknown>;

/** A socket of the client; the test is the server. */
export class FakeSocket implements WebSocketLike {
  binaryType = "";
  protocol = "";
  readonly readyState = 1;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly sent: Message[] = [];
  isClosed = false;

  constructor(
    readonly url: string,
    readonly subprotocols: string[],
  ) {}

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.sent.push(JSON.parse(String(data)) as Message);
  }

  close(): void {
    this.isClosed = true;
  }

  open(): void {
    this.protocol = this.subprotocols[0] ?? "";
    this.onopen?.({} as never);
  }

  /** Delivers messages from the server, in one text frame. */
  tell(...messages: object[]): void {
    const data = messages.map((message) => JSON.stringify(message)).join("\n");
    this.onmessage?.({ data } as never);
  }

  tellRaw(data: string | ArrayBuffer): void {
    this.onmessage?.({ data } as never);
  }

  tellBytes(...bytes: number[]): void {
    this.onmessage?.({ data: new Uint8Array(bytes).buffer } as never);
  }

  cut(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason } as never);
  }

  /** Returns the newest command `method`, as it was sent. */
  command(method: string): { id: number } & Message {
    const found = [...this.sent].reverse().find((message) => method in message);
    assert.ok(found, `${method} was sent`);
    return found as { id: number } & Message;
  }

  /** Answers the newest command `method`. */
  answer(method: string, result: object = {}): void {
    this.tell({ id: this.command(method).id, [method]: result });
  }

  refuse(method: string, code: number, message = "no", temporary = false): void {
    this.tell({ id: this.command(method).id, error: { code, message, temporary } });
  }
}

/** Time, randomness and sockets of one client. */
export class World {
  readonly sockets: FakeSocket[] = [];
  random = 1;
  nowMs = 0;
  #timers = new Set<{ atMs: number; callback: () => void }>();
  readonly environment: Partial<Environment>;

  constructor() {
    const { sockets } = this;
    this.environment = {
      WebSocket: class extends FakeSocket {
        constructor(url: string, subprotocols: string[]) {
          super(url, subprotocols);
          sockets.push(this);
        }
      },
      fetch: () => Promise.reject(new Error("HTTP is not available in this test")),
      now: () => this.nowMs,
      random: () => this.random,
      after: (delayMs, callback) => {
        const timer = { atMs: this.nowMs + delayMs, callback };
        this.#timers.add(timer);
        return () => this.#timers.delete(timer);
      },
    };
  }

  client(options: ClientOptions = {}): Client {
    const client = new Client("http://server.test", {
      transports: ["websocket"],
      environment: this.environment,
      ...options,
    });
    client.connect();
    return client;
  }

  /** Returns the newest socket. */
  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    assert.ok(socket, "a socket was opened");
    return socket;
  }

  /** The number of pending timers: none may remain after a client is closed. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Opens the newest socket, and accepts the client. */
  welcome(result: object = {}): FakeSocket {
    this.socket.open();
    this.socket.answer("connect", { client: "c1", ...result });
    return this.socket;
  }

  /** Waits until the client has opened another socket. */
  awaitSocket(): FakeSocket {
    const before = this.sockets.length;
    for (let ms = 0; ms < 60_000 && this.sockets.length === before; ms += 1) {
      this.advance(1);
    }
    assert.ok(this.sockets.length > before, "another socket was opened");
    return this.socket;
  }

  /** Advances the clock, firing timers in order. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= endMs);
      const next = due.sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) {
        this.nowMs = endMs;
        return;
      }
      this.#timers.delete(next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.callback();
    }
  }
}

/** Runs everything that waits only for promises. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
