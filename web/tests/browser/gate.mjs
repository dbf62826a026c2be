// A gate in front of the server that pauses every upload, however fast the machine is.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** The number of bytes of each connection that pass before the gate shuts. */
export const GATE_BYTES = 8 * 1024 * 1024;

/**
 * Starts a gate to the server at `url`: a page that is opened through it also uploads through it.
 *
 * GATE_BYTES of what a browser sends on one connection pass; the rest waits for `open`, after which
 * everything passes. What the server sends always passes. `leadTo` changes the server. `cut` breaks
 * all connections; `bytes` of each new connection pass before the gate shuts.
 */
export async function startGate(url) {
  let target = new URL(url);
  let bytesToPass = GATE_BYTES;
  const connections = new Set();
  const listener = createServer((browser) => {
    const connection = new Connection(browser, target.port, bytesToPass);
    connections.add(connection);
    browser.on("close", () => connections.delete(connection));
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    url: `http://127.0.0.1:${listener.address().port}`,
    open: () => connections.forEach((connection) => connection.open()),
    cut(bytes = GATE_BYTES) {
      bytesToPass = bytes;
      connections.forEach((connection) => connection.end());
    },
    leadTo: (url) => (target = new URL(url)),
    stop() {
      connections.forEach((connection) => connection.end());
      listener.close();
    },
  };
}

/** A browser's connection, and the corresponding one to the server. */
class Connection {
  #browser;
  #server;
  #left;

  constructor(browser, port, bytes) {
    this.#left = bytes;
    this.#browser = browser;
    this.#server = connect(port, "127.0.0.1");
    browser.on("data", (bytes) => this.#pass(bytes));
    this.#server.on("drain", () => this.#resume());
    this.#server.pipe(browser);
    for (const socket of [this.#browser, this.#server]) {
      socket.on("error", () => this.end());
      socket.on("close", () => this.end());
    }
  }

  open() {
    this.#left = Infinity;
    this.#resume();
  }

  end() {
    this.#browser.destroy();
    this.#server.destroy();
  }

  #pass(bytes) {
    this.#left -= bytes.length;
    const flowing = this.#server.write(bytes);
    if (!flowing || this.#left <= 0) {
      this.#browser.pause();
    }
  }

  #resume() {
    if (this.#left > 0) {
      this.#browser.resume();
    }
  }
}
