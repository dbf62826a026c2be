// The token with which this page connects to a server that requires one.

import { element, setText } from "./page.js";

const NAME = "linerate.token";

/** Returns the token for this browser tab; it is forgotten when the tab is closed. */
export function savedToken(): string | undefined {
  return sessionStorage.getItem(NAME) ?? undefined;
}

/** Connects the form that asks for a token; the page is loaded again with each change. */
export function connectTokenForm(): void {
  const input = element("token") as HTMLInputElement;
  element("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(NAME, input.value.trim());
    location.reload();
  });
  const forget = element("forget-token");
  forget.hidden = savedToken() === undefined;
  forget.addEventListener("click", () => {
    sessionStorage.removeItem(NAME);
    location.reload();
  });
  if (savedToken() !== undefined) {
    element("token-form").hidden = false;
    setText(element("token-note"), "This page connects with the token that you have entered.");
  }
}

/** Asks for a token, because the server refuses to connect this page without one. */
export function askForToken(reason: string): void {
  element("token-form").hidden = false;
  setText(
    element("token-note"),
    savedToken() === undefined
      ? `This server requires a token: ${reason}. Your backend signs one, and "linerate token" makes one for a test.`
      : `The server refuses this token: ${reason}.`,
  );
}
