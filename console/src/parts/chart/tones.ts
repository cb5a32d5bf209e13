/** How a curve is drawn: its theme colour, and its dash pattern, which distinguishes it without colours. */
export const TONES = {
  running: { name: "--running", dash: [] },
  done: { name: "--done", dash: [] },
  failed: { name: "--failed", dash: [8, 4] },
  waiting: { name: "--waiting", dash: [2, 4] },
  asks: { name: "--asks", dash: [8, 4] },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly dash: readonly number[] }>>;
