// The worker that talks to the server about one log, so that a busy page never slows a file down.

import { LogSession } from "./log-session.js";
import { SUBPROTOCOL } from "./protocol.js";
import type { FromWorker, ToWorker } from "./session-messages.js";

let session: LogSession | undefined;

addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case "open":
      open(data);
      break;
    case "ask":
      session?.ask(data.question);
      break;
    case "stop":
      session?.stop();
      break;
    case "leave":
      session?.leave();
      break;
    case "discard":
      session?.cancel();
      break;
  }
});

function open({ source, url, key, reader }: ToWorker & { type: "open" }): void {
  let socket: WebSocket | undefined;
  const connect = () => (socket = new WebSocket(url, SUBPROTOCOL));
  session = new LogSession(
    source,
    connect,
    key,
    {
      progress: (acknowledged) => tell({ type: "progress", acknowledged }),
      snapshot: (summary, final) => tell({ type: "snapshot", summary, final }),
      answer: (answer) => tell({ type: "answer", answer }),
      connected: (ready) => tell({ type: "connected", ready }),
      reconnecting: () => tell({ type: "reconnecting" }),
      reading: (kind) => tell({ type: "reading", kind }),
    },
    reader,
  );
  // The page is notified of the end at once; the worker stays until the server is notified, too.
  void session.ended.then((ended) => {
    tell({ type: "ended", ended });
    if (socket === undefined || socket.readyState === WebSocket.CLOSED) {
      close();
    }
    socket?.addEventListener("close", () => close());
  });
}

function tell(message: FromWorker): void {
  postMessage(message);
}
