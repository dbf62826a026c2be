// The key for logs, kept while the tab is open.

import { element } from "../shared/page.js";

const STORED = "linerate-logs-key";

/** Returns the key that the user entered; empty if there is none. */
export function storedKey(): string {
  return sessionStorage.getItem(STORED) ?? "";
}

/** Stores the key that the user enters, and calls `given`. */
export function watchKeyForm(given: () => void): void {
  element("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const input = element("key-input") as HTMLInputElement;
    sessionStorage.setItem(STORED, input.value);
    input.value = "";
    given();
  });
}
