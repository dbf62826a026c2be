// Sockets of Socket.IO's Java client, in a process of their own.

import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Journal, within } from "./journal.mjs";

/** What `scripts/jars` downloads. */
const LIBRARIES = fileURLToPath(new URL("../../.cache/sdk-java/lib", import.meta.url));

const SOURCE = fileURLToPath(new URL("../java/SocketIoClient.java", import.meta.url));

const EVENTS = ["acknowledged", "connect", "connect_error", "created", "disconnect", "message"];

/** Returns why the client cannot run here; `false` if it can. */
export function missingJava() {
  const reason = [
    spawnSync("javac", ["--version"]).error && "a JDK is not installed",
    !existsSync(LIBRARIES) && "run `make sdks`, which downloads the Java client",
  ].find(Boolean);
  if (reason && process.env.CI !== undefined) {
    throw new Error(reason);
  }
  return reason ?? false;
}

/** Starts a process. Its sockets reconnect quickly, and each has a connection of its own. */
export function startJava() {
  return new Java();
}

class Java {
  #child = spawn("java", ["-Xshare:auto", "-cp", `${LIBRARIES}/*`, SOURCE], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  #exited = once(this.#child, "exit");
  #sockets = [];

  constructor() {
    createInterface(this.#child.stdout).on("line", (line) => {
      const { socket, event, args } = JSON.parse(line);
      this.#sockets[socket].receive(event, args.map(decoded));
    });
  }

  /** Returns a socket that connects; without `transports`, it chooses itself. */
  connect(url, auth, { namespace = "/", transports } = {}) {
    const id = this.#sockets.length;
    const send = (command) =>
      this.#child.stdin.write(`${JSON.stringify({ socket: id, ...command })}\n`);
    const socket = new Socket(send);
    this.#sockets.push(socket);
    send({ do: "connect", url: url + namespace, auth, transports });
    return socket;
  }

  /** Connects, and waits until the server has accepted that. */
  async connected(...parameters) {
    const socket = this.connect(...parameters);
    await socket.journal.next("connect");
    return socket;
  }

  async stop() {
    this.#child.stdin.end();
    await within(this.#exited, "the end of the Java client");
  }
}

class Socket {
  #send;
  #emitter = new EventEmitter();
  #answers = [];

  constructor(send) {
    this.#send = send;
    /** The events, each with the list of its arguments. */
    this.journal = new Journal(this.#emitter, EVENTS);
  }

  receive(event, args) {
    if (event === "connect") {
      [this.id] = args;
    }
    if (event === "acknowledged") {
      const [number, ...values] = args;
      this.#answers[number](values);
    }
    this.#emitter.emit(event, args);
  }

  emit(event, ...args) {
    this.#send({ do: "emit", event, args: args.map(encoded) });
  }

  /** Emits an event, and returns the list of values with which it is acknowledged. */
  async ask(event, ...args) {
    const ack = this.#answers.length;
    const answer = new Promise((resolve) => this.#answers.push(resolve));
    this.#send({ do: "emit", event, args: args.map(encoded), ack });
    return within(answer, `the acknowledgement of ${event}`);
  }

  disconnect() {
    this.#send({ do: "disconnect" });
  }
}

function mapped(value, map) {
  const isNested = value !== null && typeof value === "object";
  if (Array.isArray(value)) {
    return value.map(map);
  }
  const entries = isNested && Object.entries(value).map(([name, part]) => [name, map(part)]);
  return isNested ? Object.fromEntries(entries) : value;
}

/** Replaces bytes by objects. */
function encoded(value) {
  return Buffer.isBuffer(value) ? { base64: value.toString("base64") } : mapped(value, encoded);
}

/** Replaces objects by the bytes that they stand for. */
function decoded(value) {
  const isBytes = typeof value?.base64 === "string";
  return isBytes ? Buffer.from(value.base64, "base64") : mapped(value, decoded);
}
