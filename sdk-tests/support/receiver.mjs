// The endpoint of an application for webhooks.

import { once } from "node:events";
import { createServer } from "node:http";
import { within } from "./journal.mjs";

/** Starts a receiver that records the headers and the body of each request. */
export async function startReceiver() {
  const requests = [];
  let wake = () => {};
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) {
      chunks.push(chunk);
    }
    requests.push({ headers: request.headers, rawBody: Buffer.concat(chunks).toString() });
    response.writeHead(204).end();
    wake();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    requests,
    /** Waits until `read`, which gets the requests, returns something. */
    async until(what, read) {
      const found = async () => {
        for (;;) {
          const result = read(requests);
          if (result) {
            return result;
          }
          await new Promise((resolve) => (wake = resolve));
        }
      };
      return within(found(), what);
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
