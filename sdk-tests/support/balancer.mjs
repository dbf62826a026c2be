// A reverse proxy without sticky sessions: each request goes to the next of several servers.

import { once } from "node:events";
import { createServer, request } from "node:http";

/**
 * Starts a balancer for the servers at `urls` on a free port. Without `upgrades`, it refuses
 * WebSockets.
 */
export async function startBalancer(urls, { upgrades = true } = {}) {
  const balancer = new Balancer(urls, upgrades);
  await balancer.listen();
  return balancer;
}

class Balancer {
  #targets;
  #turn = 0;
  #listener;

  constructor(urls, upgrades) {
    this.lead(urls);
    this.#listener = createServer((asked, answer) => this.#forward(asked, answer));
    this.#listener.on("upgrade", (asked, socket, head) => {
      if (upgrades) {
        this.#upgrade(asked, socket, head);
      } else {
        refuse(socket, 403);
      }
    });
    // Connections that were closed during an answer are of no interest.
    this.#listener.on("clientError", (_, socket) => socket.destroy());
  }

  async listen() {
    this.#listener.listen(0, "127.0.0.1");
    await once(this.#listener, "listening");
    this.url = `http://127.0.0.1:${this.#listener.address().port}`;
  }

  /** Directs requests to these servers from now on. */
  lead(urls) {
    this.#targets = urls.map((url) => new URL(url));
  }

  stop() {
    this.#listener.close();
    this.#listener.closeAllConnections();
  }

  #ask({ method, url: path, headers }) {
    const target = this.#targets[this.#turn++ % this.#targets.length];
    const { hostname, port } = target;
    return request({ hostname, port, method, path, headers, agent: false });
  }

  #forward(asked, answer) {
    const forwarded = this.#ask(asked);
    forwarded.on("response", (response) => {
      answer.writeHead(response.statusCode, response.headers);
      response.pipe(answer);
    });
    forwarded.on("error", () => answer.destroy());
    answer.on("close", () => forwarded.destroy());
    asked.pipe(forwarded);
  }

  #upgrade(asked, socket, head) {
    const forwarded = this.#ask(asked);
    forwarded.on("upgrade", ({ rawHeaders }, server) => {
      const lines = rawHeaders.map((text, at) => text + (at % 2 === 0 ? ": " : "\r\n"));
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      socket.on("error", () => server.destroy());
      server.on("error", () => socket.destroy());
      server.pipe(socket).pipe(server);
    });
    forwarded.on("response", ({ statusCode }) => refuse(socket, statusCode));
    forwarded.on("error", () => socket.destroy());
    socket.on("error", () => forwarded.destroy());
    forwarded.end(head);
  }
}

function refuse(socket, status) {
  socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\n\r\n`);
}
