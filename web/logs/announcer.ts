// Messages for screen readers that are not visible on the page.

import { element, setText } from "../shared/page.js";

export function announce(text: string): void {
  setText(element("announcer"), text);
}
