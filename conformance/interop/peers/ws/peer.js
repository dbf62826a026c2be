// Echoes messages with ws, as a server or as a client.

import WebSocket, { WebSocketServer } from 'ws';

const [role, ...words] = process.argv.slice(2);
const url = role === 'connect' ? words.shift() : undefined;
const options = Object.fromEntries(words.map((word) => word.split('=')));
const length = Number(options.fragment ?? 0);

// The extensions to negotiate; options are named like the parameters of permessage-deflate.
function deflate() {
  if (!('deflate' in options)) return false;
  const parameters = { threshold: 0 };
  if ('server_no_context_takeover' in options) parameters.serverNoContextTakeover = true;
  if ('client_no_context_takeover' in options) parameters.clientNoContextTakeover = true;
  if (options.server_max_window_bits) parameters.serverMaxWindowBits = Number(options.server_max_window_bits);
  if (options.client_max_window_bits) parameters.clientMaxWindowBits = Number(options.client_max_window_bits);
  return parameters;
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

function echo(socket) {
  socket.on('error', fail);
  socket.on('message', (data, binary) => {
    if (!length) return socket.send(data, { binary });
    for (let start = 0; start < data.length || start === 0; start += length) {
      if (start) socket.ping();
      const fin = start + length >= data.length;
      socket.send(data.subarray(start, start + length), { binary, fin });
    }
  });
}

if (url) {
  echo(new WebSocket(url, { perMessageDeflate: deflate() }));
} else {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: deflate() });
  server.on('connection', echo);
  server.on('listening', () => console.log(`ws://127.0.0.1:${server.address().port}`));
}
