// A confirmation dialog before an action that cannot be undone.

import { element, setText } from "../shared/page.js";

export interface Question {
  title: string;
  detail: string;
  /** The label of the button that confirms. */
  verb: string;
  /** The label of a checkbox, if there is one. */
  option?: string;
}

/** Asks; returns whether the checkbox is ticked, or `undefined` if the user cancels. */
export function ask(question: Question): Promise<boolean | undefined> {
  const dialog = element("question") as HTMLDialogElement;
  const box = element("question-option") as HTMLInputElement;
  setText(element("question-title"), question.title);
  setText(element("question-detail"), question.detail);
  setText(element("question-yes"), question.verb);
  setText(element("question-option-text"), question.option ?? "");
  element("question-option-row").hidden = question.option === undefined;
  box.checked = false;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const answer = () => resolve(dialog.returnValue === "yes" ? box.checked : undefined);
    dialog.addEventListener("close", answer, { once: true });
  });
}
