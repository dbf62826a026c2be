// A network between a client and the server that can be cut, or stops carrying what the server sends.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Starts a proxy on a free port that leads to `url`. */
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

  /** Leads new connections to another server. */
  lead(url) {
    this.#target = new URL(url);
  }

  /** Cuts all connections, and lets no other through until `mend`. */
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

  /** Takes nothing more from the server; what clients send goes on. */
  stall() {
    this.#pairs.forEach(({ server }) => server.pause());
  }

  flow() {
    this.#pairs.forEach(({ server }) => server.resume());
  }

  /** Carries at most so many bytes a second from the server on each new connection. */
  throttle(bytesPerSecond) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Loses whatever the server sends from now on, on the connections that there are. */
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
    const pair = { client, server, isSwallowed: false };
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
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
