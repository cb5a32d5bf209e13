/** How much there is of something. */
export interface Amount {
  readonly rows: number;
  readonly bytes: number;
}
