// What is said to screen readers, without showing anything.

import { element, setText } from "../shared/page.js";

export function announce(text: string): void {
  setText(element("announcer"), text);
}
