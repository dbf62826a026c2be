// Error messages for uploads that failed.

import { grouped, wholeDuration } from "../shared/format.js";
import type { Failure } from "./log-session.js";

export interface Trouble {
  title: string;
  detail: string;
  /** True if trying the same file again may succeed. */
  retry: boolean;
  /** True if it may succeed once the user enters the format of its lines. */
  asksForFormat?: boolean;
}

/** Explains a failure; `acknowledged` is how far the upload had come. */
export function explain(
  failure: Failure,
  acknowledged: number,
  file: { name: string; size: number },
): Trouble {
  const progress = `${grouped(acknowledged)} of ${grouped(file.size)} bytes`;
  switch (failure.reason) {
    case "unreachable":
      return {
        title: "Cannot reach the server",
        detail: "It did not accept the connection. No part of the file was read.",
        retry: true,
      };
    case "dropped":
      return {
        title: "The connection was lost",
        detail: `It could not be resumed. The server had acknowledged ${progress}; the figures below cover only that part.`,
        retry: true,
      };
    case "unreadable":
      return {
        title: "The file can no longer be read",
        detail: `It was changed, shortened, moved or locked while it was being read, after ${progress}. Choose it again to read it as it is now.`,
        retry: false,
      };
    case "not_understood":
      return {
        title: "This page does not understand the server's answer",
        detail: `${sentence(failure.message)} Reload the page: the server may have been updated since you opened it.`,
        retry: true,
      };
    case "bug":
      return {
        title: "An internal error occurred in this page",
        detail: `${sentence(failure.message)} Please report it.`,
        retry: true,
      };
    case "refused":
      return refusal(failure.code, failure.message, progress);
  }
}

/**
 * Explains that the server does not have the log of a link; `keptSeconds` is how long it keeps one.
 */
export function gone(keptSeconds: number): Trouble {
  const rule =
    keptSeconds === 0
      ? "It keeps a log only while the page that sends it is open."
      : `It keeps a log while a page shows it and for ${wholeDuration(keptSeconds)} after the last of them was closed, or for a shorter time if it needs the memory.`;
  return {
    title: "The server does not have this log any more",
    detail: `${rule} If you have the file, choose it to read it again.`,
    retry: false,
  };
}

/** Explains that the chosen files do not contain the one that was interrupted. */
export function otherFile({ name, size }: { name: string; size: number }): Trouble {
  return {
    title: "This is not the same file",
    detail: `The interrupted upload needs ${name} with its ${grouped(size)} bytes, unchanged except for lines that were added at its end. To read another log instead, use “Another log”.`,
    retry: false,
  };
}

/** Checks files before anything is sent; null if they are fine. */
export function objection(files: readonly { name: string; size: number }[]): Trouble | null {
  const file = files.find(({ size }) => size === 0);
  if (file !== undefined) {
    return {
      title: "This file is empty",
      detail: `${file.name} is 0 bytes long.`,
      retry: false,
    };
  }
  return null;
}

/** Titles for refusals that do not depend on the content of the files, by code of the protocol. */
const UNWILLING: Record<string, string> = {
  busy: "The server is busy with other logs",
  closed: "The server does not accept logs",
  keys_limited: "Too many wrong keys",
  no_memory: "The server has no memory left for this log",
  off: "Uploads are disabled",
  wrong_key: "The server refused the key",
};

function refusal(code: string, message: string, progress: string): Trouble {
  if (code === "not_a_log") {
    return {
      title: "This is not an access log in a known format",
      detail: sentence(message),
      retry: false,
      asksForFormat: true,
    };
  }
  if (code === "unknown_format") {
    return {
      title: "The server does not understand that format",
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
