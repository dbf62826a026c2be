// Accepts files that are dropped anywhere on the page or chosen with the button.

import { element } from "../shared/page.js";

/** What was dropped: files, or something that the page cannot use. */
export type Offer = { kind: "files"; files: File[] } | { kind: "unusable"; why: string };

/** Calls `take` with the files that the user drops or chooses. */
export function watchForFiles(take: (offer: Offer) => void): void {
  const input = element("file-input") as HTMLInputElement;
  input.addEventListener("change", () => {
    const files = [...(input.files ?? [])];
    if (files.length > 0) {
      take({ kind: "files", files });
    }
    input.value = ""; // So that the same file can be chosen again.
  });
  for (const id of ["choose", "choose-another", "continue-upload"]) {
    element(id).addEventListener("click", () => input.click());
  }

  const veil = (on: boolean) => document.body.classList.toggle("dropping", on);
  addEventListener("dragenter", (event) => veil(carriesFiles(event)));
  addEventListener("dragover", (event) => {
    if (carriesFiles(event)) {
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      veil(true);
    }
  });
  // The event names the element that is entered; it names none if the pointer leaves the page.
  addEventListener("dragleave", ({ relatedTarget }) => {
    if (relatedTarget === null) {
      veil(false);
    }
  });
  addEventListener("drop", (event) => {
    veil(false);
    if (carriesFiles(event)) {
      event.preventDefault();
      take(offerOf(event.dataTransfer));
    }
  });
}

function carriesFiles(event: DragEvent): event is DragEvent & { dataTransfer: DataTransfer } {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

function offerOf({ files, items }: DataTransfer): Offer {
  if (files.length === 0) {
    return { kind: "unusable", why: "What you dropped is not a file." };
  }
  if ([...items].some((item) => item.webkitGetAsEntry()?.isDirectory === true)) {
    return { kind: "unusable", why: "This is a folder. Drop the log files themselves." };
  }
  return { kind: "files", files: [...files] };
}
