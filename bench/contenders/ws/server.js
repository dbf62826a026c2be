// An echo server on ws, after the library's documentation.

import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { parseArgs } from 'node:util';
import WebSocket, { WebSocketServer } from 'ws';

// parseArgs does not support options with two values: the key file follows as a positional
// argument.
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string' },
    threads: { type: 'string' },
    service: { type: 'string', default: 'echo' },
    tls: { type: 'string' },
    deflate: { type: 'string' },
  },
});

// Compresses messages of any length, not only those of 1 KiB or more.
const DEFLATE = {
  'no-takeover': { threshold: 0, serverNoContextTakeover: true, clientNoContextTakeover: true },
  takeover: { threshold: 0 },
};

const SERVICES = {
  acknowledge: (socket, data) => socket.send(String(data.length)),
  echo: (socket, data, isBinary) => socket.send(data, { binary: isBinary }),
  fanout(socket, data, isBinary, clients) {
    for (const client of clients) {
      if (client.readyState === WebSocket.OPEN) client.send(data, { binary: isBinary });
    }
  },
};

function serve() {
  const answer = SERVICES[options.service];
  const server = options.tls
    ? createTlsServer({ cert: readFileSync(options.tls), key: readFileSync(positionals[0]) })
    : createServer();
  // The default limit of 100 MiB for a message is above the required one.
  const webSockets = new WebSocketServer({ server, perMessageDeflate: DEFLATE[options.deflate] ?? false });
  webSockets.on('connection', (socket) => {
    socket.on('error', console.error);
    socket.on('message', (data, isBinary) => answer(socket, data, isBinary, webSockets.clients));
  });
  server.listen(Number(options.port), '127.0.0.1');
}

const processes = options.service === 'fanout' ? 1 : Number(options.threads);
if (cluster.isPrimary && processes > 1) {
  for (let i = 0; i < processes; i++) cluster.fork();
} else {
  serve();
}
