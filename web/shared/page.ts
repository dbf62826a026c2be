// Finds and fills the elements of a page.

/** Returns the element marked `data-testid="id"`; it is a bug if the page has none. */
export function element(id: string, within: ParentNode = document): HTMLElement {
  const found = within.querySelector<HTMLElement>(`[data-testid="${id}"]`);
  if (found === null) {
    throw new Error(`the page has no element marked ${id}`);
  }
  return found;
}

/** Sets an element's text, without touching the document if nothing changed. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) {
    target.textContent = text;
  }
}

/** Shows a figure: formatted as text, and exact in `data-value`. */
export function setFigure(target: HTMLElement, text: string, exact: number): void {
  setText(target, text);
  target.dataset["value"] = String(exact);
}

/** Creates an element with a class and, if given, text. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Returns a function that has `draw` called once when the browser next draws the page. */
export function oncePerFrame(draw: () => void): () => void {
  let isDue = false;
  return () => {
    if (!isDue) {
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        draw();
      });
    }
  };
}
