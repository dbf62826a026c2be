// What the page says when an upload can't go on, in words for the person whose file it is.

import { grouped } from "../shared/format.js";
import type { Failure } from "./log-session.js";

export interface Trouble {
  title: string;
  detail: string;
  /** Whether the same file may succeed when it is tried again. */
  retry: boolean;
  /** Whether it may succeed when the person says what its lines look like. */
  asksForFormat?: boolean;
}

/** Explains a failure, given how far the upload had come. */
export function explain(
  failure: Failure,
  acknowledged: number,
  file: { name: string; size: number },
): Trouble {
  const progress = `${grouped(acknowledged)} of ${grouped(file.size)} bytes`;
  switch (failure.reason) {
    case "unreachable":
      return {
        title: "The server can't be reached",
        detail: "It didn't accept the connection. Nothing of the file was read.",
        retry: true,
      };
    case "dropped":
      return {
        title: "The connection was lost",
        detail: `It couldn't be taken up again. The server had acknowledged ${progress}; the figures below cover that part only.`,
        retry: true,
      };
    case "unreadable":
      return {
        title: "The file can't be read any more",
        detail: `It was changed, shortened, moved or locked while it was being read, after ${progress}. Choose it again to read it as it is now.`,
        retry: false,
      };
    case "not_understood":
      return {
        title: "The server answered something this page doesn't understand",
        detail: `${failure.message}. Reload the page: the server may have been updated since it was opened.`,
        retry: true,
      };
    case "bug":
      return {
        title: "This page made a mistake",
        detail: `${sentence(failure.message)} Please report it.`,
        retry: true,
      };
    case "refused":
      return refusal(failure.code, failure.message, progress);
  }
}

/** What can be said of files before anything is sent; null when nothing speaks against them. */
export function objection(files: readonly { name: string; size: number }[]): Trouble | null {
  const file = files.find(({ size }) => size === 0);
  if (file !== undefined) {
    return {
      title: "This file is empty",
      detail: `${file.name} has no bytes to read.`,
      retry: false,
    };
  }
  return null;
}

/** What the server has against an upload whatever its files hold, by code of the protocol. */
const UNWILLING: Record<string, string> = {
  busy: "The server is busy with other logs",
  closed: "The server takes no logs",
  keys_limited: "Too many wrong keys",
  no_memory: "The server has no memory left for this log",
  off: "Uploads are switched off",
  wrong_key: "The server did not take the key",
};

function refusal(code: string, message: string, progress: string): Trouble {
  if (code === "not_a_log") {
    return {
      title: "This is no access log of a known format",
      detail: sentence(message),
      retry: false,
      asksForFormat: true,
    };
  }
  if (code === "unknown_format") {
    return {
      title: "The server doesn't understand that format",
      detail: sentence(message),
      retry: false,
      asksForFormat: true,
    };
  }
  const title = UNWILLING[code];
  if (title !== undefined) {
    const retry = code === "busy" || code === "keys_limited" || code === "no_memory";
    return { title, detail: sentence(message), retry };
  }
  return {
    title: "The server stopped reading",
    detail: `${sentence(message)} It had acknowledged ${progress}.`,
    retry: code !== "too_large",
  };
}

function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") {
    return "";
  }
  const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
