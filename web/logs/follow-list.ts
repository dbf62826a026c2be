// The files that the server follows as they grow, to be watched instead of dropping one.

import { ownServer } from "../shared/live-socket.js";
import { create, element } from "../shared/page.js";
import { parseServerMessage, SUBPROTOCOL } from "./protocol.js";

/** A server that follows no file says nothing; it is asked for this long. */
const ASK_MS = 5_000;

/** Asks the server once, and shows a button for each file; `follow` hears which was chosen. */
export function listFollowable(follow: (name: string) => void): void {
  const socket = new WebSocket(ownServer("/logs/upload"), SUBPROTOCOL);
  const timer = setTimeout(() => socket.close(), ASK_MS);
  socket.addEventListener("message", ({ data }) => {
    const files = typeof data === "string" ? filesIn(data) : [];
    clearTimeout(timer);
    socket.close();
    show(files, follow);
  });
}

function filesIn(text: string): string[] {
  const message = parseServerMessage(text);
  return message.type === "files" ? message.files : [];
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
