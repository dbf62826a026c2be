// The yardstick of `npm run measure`: a server that takes an upload and parses nothing.
//
// It reads frame headers, skips payloads without unmasking them, acknowledges, and ends with an
// empty summary. So it is no WebSocket server but the least that the log page can be measured to.

import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const HANDSHAKE_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455 §1.3
const WINDOW_BYTES = 16 * 1024 * 1024;
const ACKNOWLEDGE_EVERY = 256 * 1024;
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];
const NO_VALUES = { distinct: 0, exact: true, error_max: 0, not_counted: 0, none: 0, top: [] };
const PANELS = ["address", "agent", "host", "method", "path", "referrer", "status"];
const EMPTY_SUMMARY = {
  ...{ lines: 0, requests: 0, unparsed: 0, blank: 0, unparsed_reasons: {}, unparsed_samples: [] },
  ...{ bytes_read: 0, bytes_sent: 0, unique_addresses: 0, unique_addresses_exact: true },
  ...{ unique_paths: 0, paths_exact: true, statuses: {}, methods: {}, top_paths: [] },
  ...{ status_classes: {}, first_time: null, last_time: null },
  timeline: {
    start: 0,
    bucket_seconds: 60,
    classes: Object.fromEntries(CLASSES.map((name) => [name, []])),
    ...{ bytes: [], by_method: {}, by_host: {}, outside: 0 },
  },
  ...{ format: "", approximate: false, latency: null },
  panels: Object.fromEntries(PANELS.map((name) => [name, NO_VALUES])),
  bots: { requests: 0, bytes: 0, top: [] },
  error_paths: { "4xx": [], "5xx": [] },
  firewall: { by_rate: [], by_errors: [] },
  filterable: { requests: 0, bytes: 0, bytes_max: 0, complete: true },
  rows_kept: { lines: 0, bytes: 0, bytes_max: 0, complete: false },
};

/** Starts the server on a free port. */
export async function startDiscardServer() {
  const server = createServer(servePages);
  server.on("upgrade", (request, socket) => {
    socket.write(acceptance(request));
    new Upload(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function servePages(request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  const path = `${DIST}${pathname === "/logs" ? "/logs.html" : pathname}`;
  if (pathname.includes("..") || !existsSync(path)) {
    response.writeHead(404).end();
    return;
  }
  const type = TYPES[path.split(".").at(-1)] ?? "application/octet-stream";
  response.writeHead(200, { "content-type": type });
  createReadStream(path).pipe(response);
}

function acceptance(request) {
  const key = request.headers["sec-websocket-key"] + HANDSHAKE_GUID;
  return [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${createHash("sha1").update(key).digest("base64")}`,
    "Sec-WebSocket-Protocol: linerate.logs.v1",
    "\r\n",
  ].join("\r\n");
}

/** Walks over the frames of one connection: header, payload, header, … */
class Upload {
  #socket;
  #header = Buffer.alloc(0);
  #payloadLeft = 0;
  #mask;
  #text;
  #total = 0;
  #acknowledged = 0;

  constructor(socket) {
    this.#socket = socket;
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes) => this.#handleInput(bytes));
  }

  #handleInput(bytes) {
    let rest = bytes;
    while (rest.length > 0) {
      rest = this.#payloadLeft > 0 ? this.#skipPayload(rest) : this.#readHeader(rest);
    }
    if (this.#total - this.#acknowledged >= ACKNOWLEDGE_EVERY) {
      this.#acknowledge();
    }
  }

  #readHeader(bytes) {
    const before = this.#header.length;
    const seen = Buffer.concat([this.#header, bytes.subarray(0, 14)]);
    const short = seen.length > 1 ? seen[1] & 0x7f : 0;
    const extended = short === 127 ? 8 : short === 126 ? 2 : 0;
    const length = 2 + extended + 4; // Frames of a client are masked (RFC 6455 §5.3).
    if (seen.length < length) {
      this.#header = seen;
      return bytes.subarray(seen.length - before);
    }
    this.#header = Buffer.alloc(0);
    this.#payloadLeft = short;
    if (extended > 0) {
      this.#payloadLeft = extended === 2 ? seen.readUInt16BE(2) : Number(seen.readBigUInt64BE(2));
    }
    this.#mask = seen.subarray(length - 4, length);
    this.#text = (seen[0] & 0x0f) === 0x2 || (seen[0] & 0x0f) === 0x0 ? undefined : [];
    return bytes.subarray(length - before);
  }

  #skipPayload(bytes) {
    const part = bytes.subarray(0, this.#payloadLeft);
    this.#payloadLeft -= part.length;
    if (this.#text === undefined) {
      this.#total += part.length;
    } else {
      this.#text.push(part);
      if (this.#payloadLeft === 0) {
        this.#handleText(Buffer.concat(this.#text).map((byte, i) => byte ^ this.#mask[i % 4]));
      }
    }
    return bytes.subarray(part.length);
  }

  #handleText(payload) {
    const text = payload.toString();
    if (text.includes('"start"')) {
      this.#say({ type: "ready", id: "", window_bytes: WINDOW_BYTES, bytes: 0 });
    } else if (text.includes('"finish"')) {
      this.#acknowledge();
      this.#say({ type: "snapshot", final: true, summary: EMPTY_SUMMARY });
    } else if (text.includes('"seq"')) {
      const { seq } = JSON.parse(text);
      this.#say({ type: "refused", seq, code: "rows_not_kept", message: "nothing is kept" });
    } else {
      this.#socket.end();
    }
  }

  #acknowledge() {
    this.#acknowledged = this.#total;
    this.#say({ type: "ack", bytes: this.#total });
  }

  #say(message) {
    const payload = Buffer.from(JSON.stringify(message));
    const header =
      payload.length < 126
        ? Buffer.from([0x81, payload.length])
        : Buffer.from([0x81, 126, payload.length >> 8, payload.length & 0xff]);
    this.#socket.write(Buffer.concat([header, payload]));
  }
}
