// An echo server on Bun.serve, based on Bun's documentation.

import { parseArgs } from 'node:util';

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

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
// Messages beyond this limit are dropped. Nothing that a client may have in flight must be dropped.
const UNSENT_BYTES_MAX = 1024 * 1024 * 1024;
const TOPIC = 'all';

const DEFLATE = {
  'no-takeover': { compress: 'shared', decompress: 'shared' },
  takeover: { compress: 'dedicated', decompress: 'dedicated' },
};
const compress = options.deflate !== undefined;

const SERVICES = {
  acknowledge: {
    message: (socket, message) => void socket.send(String(Buffer.byteLength(message)), compress),
  },
  echo: {
    message: (socket, message) => void socket.send(message, compress),
  },
  fanout: {
    open: (socket) => socket.subscribe(TOPIC),
    message: (_socket, message) => void server.publish(TOPIC, message, compress),
  },
};

const processes = options.service === 'fanout' ? 1 : Number(options.threads);
// A worker has a channel to its parent, and ends with it.
const isWorker = process.send !== undefined;
if (isWorker) {
  process.on('disconnect', () => process.exit());
} else {
  for (let i = 1; i < processes; i++) {
    Bun.spawn([process.execPath, import.meta.path, ...process.argv.slice(2)], { stdout: 'inherit', stderr: 'inherit', ipc() {} });
  }
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(options.port),
  reusePort: processes > 1,
  tls: options.tls && { cert: Bun.file(options.tls), key: Bun.file(positionals[0]) },
  fetch(request, server) {
    return server.upgrade(request) ? undefined : new Response('this port speaks WebSocket', { status: 426 });
  },
  websocket: {
    ...SERVICES[options.service],
    backpressureLimit: UNSENT_BYTES_MAX,
    maxPayloadLength: MESSAGE_BYTES_MAX,
    perMessageDeflate: DEFLATE[options.deflate] ?? false,
  },
});
