// What the server offers before a log is chosen: whether it accepts uploads, and the files it
// follows.

import { ownServer } from "../shared/live-socket.js";
import { wholeDuration } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { storedKey } from "./key.js";
import { parseServerMessage, SUBPROTOCOL, type Uploads } from "./protocol.js";

/** A server that follows no files does not answer; the page waits this long. */
const ASK_MS = 15_000;

const TITLE: Record<Uploads, string> = {
  allowed: "Drop an access log",
  closed: "This server does not accept logs",
  key: "Logs require a key",
  off: "Uploads are disabled",
};

const WHY: Record<Uploads, string> = {
  allowed: "",
  closed:
    "It requires authentication, but has no key for logs. Its operator can set auth.logs_key.",
  key: "To read logs on this server, enter its key for logs or its admin key.",
  off: "Its operator has disabled uploads (logs.uploads_max\u00a0=\u00a00).",
};

/**
 * Asks the server once, and shows a button for each file; `follow` is called with the chosen one,
 * and `admitted` if the server accepts this client.
 */
export function listFollowable(follow: (name: string) => void, admitted: () => void): void {
  const socket = new WebSocket(ownServer("/logs/upload"), SUBPROTOCOL);
  const timer = setTimeout(() => socket.close(), ASK_MS);
  const key = storedKey();
  let isShown = false;
  const end = () => {
    clearTimeout(timer);
    socket.close();
  };
  socket.addEventListener("message", ({ data }) => {
    const message = parseServerMessage(String(data));
    if (message.type === "error") {
      showUploads("key", isAboutKeys(message.code) ? message.message : "");
      end();
    } else if (message.type === "files" && message.uploads === "key" && key !== "" && !isShown) {
      isShown = true;
      socket.send(JSON.stringify({ type: "key", key }));
    } else if (message.type === "files") {
      showUploads(message.uploads, "");
      setText(element("kept-time"), keptTime(message.kept_s));
      show(message.files, follow);
      if (message.uploads === "allowed" || message.uploads === "off") {
        admitted();
      }
      end();
    }
  });
}

function showUploads(uploads: Uploads, objection: string): void {
  document.body.dataset["uploads"] = uploads;
  setText(element("invitation-title"), TITLE[uploads]);
  setText(element("uploads-why"), WHY[uploads]);
  setText(element("key-objection"), objection);
}

/** Says for how long the server keeps a log after its last page was closed. */
function keptTime(seconds: number): string {
  return seconds === 0 ? "" : ` and for ${wholeDuration(seconds)} after that`;
}

function isAboutKeys(code: string): boolean {
  return code === "wrong_key" || code === "keys_limited";
}

function show(files: string[], follow: (name: string) => void): void {
  const buttons = files.map((name) => {
    const button = create("button", "follow", name);
    button.type = "button";
    button.dataset["testid"] = "follow";
    button.addEventListener("click", () => follow(name));
    const item = create("li");
    item.append(button);
    return item;
  });
  element("follow-list").replaceChildren(...buttons);
  element("followable").classList.toggle("unused", files.length === 0);
}
