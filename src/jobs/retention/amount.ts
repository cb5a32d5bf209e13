/** A number of rows and of bytes. */
export interface Amount {
  readonly rows: number;
  readonly bytes: number;
}
