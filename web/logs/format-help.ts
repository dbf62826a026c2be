// Help for logs of unknown format: shows the first lines, and a field to enter their format.

import { element, setText } from "../shared/page.js";

/** The number of lines shown, and how much of the file is read for them. */
const LINES = 4;
const HEAD_BYTES = 8 * 1024;

/** `retry` is called with the format that the user entered. */
export function watchFormatForm(retry: (format: string) => void): void {
  element("format-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const format = (element("format-input") as HTMLInputElement).value.trim();
    if (format !== "") {
      retry(format);
    }
  });
}

/** Shows the form with the first lines of the file, or without lines if they cannot be read. */
export async function showFormatForm(file: File): Promise<void> {
  element("format-form").hidden = false;
  setText(element("format-lines"), await firstLines(file).catch(() => ""));
}

export function hideFormatForm(): void {
  element("format-form").hidden = true;
}

/** Returns the first lines, decompressed if the browser can do so itself. */
async function firstLines(file: File): Promise<string> {
  const head = file.slice(0, HEAD_BYTES);
  const magic = new Uint8Array(await head.slice(0, 2).arrayBuffer());
  const isGzip = magic[0] === 0x1f && magic[1] === 0x8b;
  const text = isGzip ? await unpacked(head) : await head.text();
  return text.split("\n").slice(0, LINES).join("\n");
}

/** Decompresses the beginning of a gzip file; a truncated stream is not an error. */
async function unpacked(head: Blob): Promise<string> {
  const reader = head.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (text.split("\n").length <= LINES) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done || value === undefined) {
      break;
    }
    text += decoder.decode(value, { stream: true });
  }
  return text;
}
