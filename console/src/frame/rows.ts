/** Moves the focus to the next or previous row of the page's lists; from elsewhere to the first one. */
export function moveBetweenRows(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".row-link")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  rows[at === -1 ? 0 : at + step]?.focus();
}

/** Selects or deselects the row that has the focus, if its list allows it. */
export function toggleChoiceOfRow(): void {
  const row = document.activeElement?.closest("tr");
  row?.querySelector<HTMLInputElement>(".choice input:enabled")?.click();
}
