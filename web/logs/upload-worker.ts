// The worker that runs one upload, so that a busy page never slows the file down.

import { SUBPROTOCOL } from "./protocol.js";
import { Upload } from "./upload.js";
import type { FromWorker, ToWorker } from "./upload-messages.js";

let upload: Upload | undefined;

addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "cancel") {
    upload?.cancel();
    return;
  }
  const socket = new WebSocket(data.url, SUBPROTOCOL);
  upload = new Upload(
    data.file,
    socket,
    {
      progress: (acknowledged) => tell({ type: "progress", acknowledged }),
      snapshot: (summary, final) => tell({ type: "snapshot", summary, final }),
      reading: (kind) => tell({ type: "reading", kind }),
    },
    data.reader,
  );
  // The page hears of the end at once; the worker stays until the server has, too.
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
  const told = upload.outcome.then((outcome) => tell({ type: "ended", outcome }));
  void Promise.all([told, closed]).then(() => close());
});

function tell(message: FromWorker): void {
  postMessage(message);
}
