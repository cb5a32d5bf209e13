/** How a curve is drawn: its colour of the theme, and its dashes, so that it differs without colours. */
export const TONES = {
  running: { name: "--running", dash: [] },
  done: { name: "--done", dash: [] },
  failed: { name: "--failed", dash: [8, 4] },
  waiting: { name: "--waiting", dash: [2, 4] },
  asks: { name: "--asks", dash: [8, 4] },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly dash: readonly number[] }>>;
