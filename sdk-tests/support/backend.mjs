// The application's backend, as an Express application would be: a function for each question.

import { once } from "node:events";
import { createServer } from "node:http";

/**
 * Starts a backend. `answer` gets the question's name, its fields and its headers, and returns the
 * answer, or `undefined` for none at all.
 */
export async function startBackend(answer) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) {
      chunks.push(chunk);
    }
    const event = request.url.slice(1);
    const reply = answer(event, JSON.parse(Buffer.concat(chunks)), request.headers);
    if (reply !== undefined) {
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify(reply));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/{event}`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
