// Text from a log, made safe to look at.

/** Control characters, and characters that change the direction of the text after them. */
const STEERING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Escapes characters that would reverse or hide a part of the text, as `linerate logs` does: a path
 * with U+202E could otherwise look like another one.
 */
export function visible(text: string): string {
  return text.replace(STEERING, (char) => `\\u{${char.charCodeAt(0).toString(16)}}`);
}
