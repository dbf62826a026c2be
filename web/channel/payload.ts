// Payloads as people can read them: JSON, text or bytes, with nothing that changes the page.

/** Number of characters shown of a payload in a list. */
export const PREVIEW_MAX = 300;
/** Number of characters shown of a string, or of a payload as text. */
export const TEXT_MAX = 20_000;
/** Number of bytes shown in hexadecimal. */
const HEX_BYTES_MAX = 1_024;
const HEX_PER_LINE = 16;

/** Control characters other than line ends and tabs, and those that change the text's direction. */
const INVISIBLE = new RegExp(
  "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f" +
    "\\u2028\\u2029\\u202a-\\u202e\\u2060\\u2066-\\u2069\\ufeff]",
  "g",
);
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LENIENT = new TextDecoder("utf-8", { ignoreBOM: true });

export type Payload =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary" };

/** Returns `text` with characters that are invisible, or reorder others, as escapes: `\u202e`. */
export function visible(text: string): string {
  return text.replace(
    INVISIBLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Returns `text` on one line, in at most about `max` characters. */
export function preview(text: string, max = PREVIEW_MAX): string {
  const start = visible(text.slice(0, max)).replace(/\s+/g, " ");
  return text.length > max ? `${start} …` : start;
}

/** Returns the beginning of a payload on one line; of bytes that are not text, in hexadecimal. */
export function previewOf(bytes: Uint8Array): string {
  const isCut = bytes.length > PREVIEW_MAX;
  if (!isText(bytes)) {
    const hex = [...bytes.subarray(0, 24)].map(hexByte).join(" ");
    return bytes.length > 24 ? `${hex} …` : hex;
  }
  const text = LENIENT.decode(bytes.subarray(0, PREVIEW_MAX), { stream: isCut });
  if (isCut) {
    LENIENT.decode(); // Forgets a character that was cut.
  }
  return isCut ? `${preview(text)} …` : preview(text);
}

/** Returns whether a payload is valid UTF-8. */
export function isText(bytes: Uint8Array): boolean {
  return textOf(bytes) !== undefined;
}

/** Reads a payload: as JSON if it is, otherwise as text if it is. */
export function read(bytes: Uint8Array): Payload {
  const text = textOf(bytes);
  if (text === undefined) {
    return { kind: "binary" };
  }
  try {
    return { kind: "json", value: JSON.parse(text) as unknown };
  } catch {
    // Not JSON, or nested too deeply for the browser.
    return { kind: "text", text };
  }
}

/** Returns the payload in full, up to a limit: as text, or as lines of hexadecimal. */
export function inFull(bytes: Uint8Array): string {
  const text = textOf(bytes);
  return text === undefined ? hexLines(bytes) : shortened(text);
}

/** Returns the beginning of `text`, and how much is missing. */
export function shortened(text: string, max = TEXT_MAX): string {
  const start = visible(text.slice(0, max));
  return text.length > max ? `${start} … (${text.length - max} more characters)` : start;
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return STRICT.decode(bytes);
  } catch {
    return undefined;
  }
}

function hexLines(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES_MAX); at += HEX_PER_LINE) {
    const line = [...bytes.subarray(at, Math.min(at + HEX_PER_LINE, HEX_BYTES_MAX))];
    const hex = line
      .map(hexByte)
      .join(" ")
      .padEnd(3 * HEX_PER_LINE);
    const ascii = line.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·"));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex} ${ascii.join("")}`);
  }
  if (bytes.length > HEX_BYTES_MAX) {
    lines.push(`… (${bytes.length - HEX_BYTES_MAX} more bytes)`);
  }
  return lines.join("\n");
}

function hexByte(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
