/** Moves the focus to the next row of the page's lists, or to the one before; from elsewhere to the first one. */
export function moveBetweenRows(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".row-link")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  rows[at === -1 ? 0 : at + step]?.focus();
}

/** Chooses the row that has the focus, where its list lets rows be chosen, or no longer. */
export function toggleChoiceOfRow(): void {
  const row = document.activeElement?.closest("tr");
  row?.querySelector<HTMLInputElement>(".choice input:enabled")?.click();
}
