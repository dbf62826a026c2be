// Taking files: dropped anywhere on the page, or chosen with the button.

import { element } from "../shared/page.js";

/** What was dropped, as far as the page can use it. */
export type Offer = { kind: "files"; files: File[] } | { kind: "unusable"; why: string };

/** Calls `take` with the files that someone drops or chooses. */
export function watchForFiles(take: (offer: Offer) => void): void {
  const input = element("file-input") as HTMLInputElement;
  input.addEventListener("change", () => {
    const files = [...(input.files ?? [])];
    if (files.length > 0) {
      take({ kind: "files", files });
    }
    input.value = ""; // So that the same file can be chosen again.
  });
  for (const id of ["choose", "choose-another"]) {
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
  // Leaving an element for another inside the page names that other; leaving the page names none.
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
    return { kind: "unusable", why: "The drop carried no file." };
  }
  if ([...items].some((item) => item.webkitGetAsEntry()?.isDirectory === true)) {
    return { kind: "unusable", why: "That is a folder; drop the log files themselves." };
  }
  return { kind: "files", files: [...files] };
}
