// The uploads that this tab began: what it needs to own one again after a reload.

import type { FileMark } from "../client/src/upload/file-mark.js";

/** An upload of this tab. */
export interface OwnUpload {
  /** The secret that continues the upload; the name in the address only shows it. */
  id: string;
  /** Its files; empty once it is complete. */
  marks: FileMark[];
  isComplete: boolean;
}

const PREFIX = "linerate-log-";

/** Stores an upload under its name for viewers, until the tab is closed. */
export function storeUpload(name: string, upload: OwnUpload): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(upload));
  } catch {
    // Without storage, a reload shows the upload but cannot continue it.
  }
}

/** Returns the upload with this name for viewers, if this tab began it. */
export function storedUpload(name: string): OwnUpload | undefined {
  const stored = sessionStorage.getItem(PREFIX + name);
  return stored === null ? undefined : (JSON.parse(stored) as OwnUpload);
}

/** Forgets an upload that was deleted. */
export function forgetUpload(name: string): void {
  sessionStorage.removeItem(PREFIX + name);
}
