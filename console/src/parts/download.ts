/** Downloads content as a file. Replaces characters that file names cannot contain by dashes. */
export function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replace(/[^\p{L}\p{N}._-]+/gu, "-");
  link.click();
  // The browser has begun the download by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
