// An upload without a browser, to measure the server with a sender that costs next to nothing.
//
// The log is masked once and sent repeatedly as one message. This implements only as much of RFC
// 6455 as that needs, with a trusted server.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:http";

const MASKING_KEY = Buffer.from("7fa1c3e5", "hex");
const TEXT = 0x1;
const BINARY = 0x2;

/** Sends the log at `path` `times` over as one file; returns bytes per second and final figures. */
export async function uploadDirectly(url, path, times) {
  const log = await readFile(path);
  const message = frame(BINARY, log);
  const size = log.length * times;
  const socket = await upgraded(`${url}/logs/upload`);
  const say = (control) => socket.write(frame(TEXT, Buffer.from(JSON.stringify(control))));
  const startedMs = performance.now();
  say({ type: "start", files: [{ name: "direct.log", size }] });

  let [window, sent, acknowledged] = [0, 0, 0];
  for await (const heard of messagesOf(socket)) {
    if (heard.type === "error") {
      throw new Error(`server refused the upload: ${heard.message}`);
    } else if (heard.type === "snapshot" && heard.final) {
      const seconds = (performance.now() - startedMs) / 1_000;
      return { rate: size / seconds, summary: heard.summary };
    }
    window = heard.window_bytes ?? window;
    acknowledged = heard.type === "ack" ? heard.bytes : acknowledged;
    while (sent < size && sent - acknowledged + log.length <= window) {
      socket.write(message);
      sent += log.length;
      if (sent === size) {
        say({ type: "finish" });
      }
    }
  }
  throw new Error("connection ended before the final figures");
}

async function upgraded(url) {
  const opening = request(url, {
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": Buffer.alloc(16).toString("base64"),
      "sec-websocket-protocol": "linerate.logs.v1",
    },
  });
  opening.end();
  const [, socket, head] = await once(opening, "upgrade");
  socket.unshift(head);
  return socket;
}

/** Returns `payload` as one frame: below 126 bytes, or above 65,535. */
function frame(opcode, payload) {
  const header = [0x80 | opcode, 0x80 | (payload.length < 126 ? payload.length : 127)];
  const length = Buffer.alloc(payload.length < 126 ? 0 : 8);
  if (length.length > 0) {
    length.writeBigUInt64BE(BigInt(payload.length));
  }
  const masked = payload.map((byte, i) => byte ^ MASKING_KEY[i % 4]);
  return Buffer.concat([Buffer.from(header), length, MASKING_KEY, masked]);
}

/** Yields the text messages that arrive. The server neither masks nor fragments. */
async function* messagesOf(socket) {
  let input = Buffer.alloc(0);
  for await (const bytes of socket) {
    input = Buffer.concat([input, bytes]);
    for (let end = endOfFrame(input); end <= input.length; end = endOfFrame(input)) {
      if ((input[0] & 0x0f) === TEXT) {
        yield JSON.parse(input.subarray(startOfPayload(input), end));
      }
      input = input.subarray(end);
    }
  }
}

function startOfPayload(input) {
  return { 126: 4, 127: 10 }[input[1]] ?? 2;
}

/** Returns where the first frame in `input` ends; `Infinity` while its header is incomplete. */
function endOfFrame(input) {
  const start = input.length < 2 ? Infinity : startOfPayload(input);
  if (input.length < start) {
    return Infinity;
  }
  const lengths = { 4: () => input.readUInt16BE(2), 10: () => Number(input.readBigUInt64BE(2)) };
  return start + (lengths[start]?.() ?? input[1]);
}
