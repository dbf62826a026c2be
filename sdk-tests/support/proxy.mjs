// A network between a client and the server that can be cut, or can stop forwarding the server's
// data.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Starts a proxy to `url` on a free port. */
export async function startProxy(url) {
  const proxy = new Proxy(new URL(url));
  await proxy.listen();
  return proxy;
}

class Proxy {
  #target;
  #listener;
  #pairs = new Set();
  #isUp = true;
  #bytesPerSecond = Infinity;

  constructor(target) {
    this.#target = target;
    this.#listener = createServer((client) => this.#accept(client));
  }

  async listen() {
    this.#listener.listen(0, "127.0.0.1");
    await once(this.#listener, "listening");
    this.url = `http://127.0.0.1:${this.#listener.address().port}`;
  }

  /** Directs new connections to another server. */
  lead(url) {
    this.#target = new URL(url);
  }

  /** Cuts all connections, and refuses new ones until `mend`. */
  cut() {
    this.#isUp = false;
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  mend() {
    this.#isUp = true;
  }

  /** Cuts the connections of clients, and leaves those of the server open. */
  vanish() {
    for (const pair of this.#pairs) {
      pair.isServerKept = true;
      pair.client.resetAndDestroy();
    }
  }

  /** Stops reading from the server; data from clients is still forwarded. */
  stall() {
    this.#pairs.forEach(({ server }) => server.pause());
  }

  flow() {
    this.#pairs.forEach(({ server }) => server.resume());
  }

  /** Limits the bytes per second from the server on each new connection. */
  throttle(bytesPerSecond) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Discards what the server sends from now on, on the existing connections. */
  swallow() {
    this.#pairs.forEach((pair) => (pair.isSwallowed = true));
  }

  stop() {
    this.cut();
    this.#listener.close();
  }

  #accept(client) {
    if (!this.#isUp) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target.port, this.#target.hostname);
    const pair = { client, server, isSwallowed: false, isServerKept: false };
    this.#pairs.add(pair);
    client.pipe(server);
    server.on("data", (bytes) => {
      if (this.#bytesPerSecond !== Infinity) {
        server.pause();
        setTimeout(() => server.resume(), (bytes.length / this.#bytesPerSecond) * 1_000);
      }
      if (!pair.isSwallowed && !client.write(bytes)) {
        server.pause();
        client.once("drain", () => server.resume());
      }
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ]) {
      one.on("error", () => other.destroy());
      one.on("close", () => {
        if (other === server && pair.isServerKept) {
          return;
        }
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
