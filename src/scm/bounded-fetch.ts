/**
 * Maximum size of a response that is no page of a source host: the discovery documents, keys and tokens of large
 * sign-in providers are below 100 kB, and the responses of collectors are smaller.
 */
export const MAX_RESPONSE_BYTES = 512 * 1_024;

/**
 * Sends a request as `fetch` does, and reads the whole response.
 *
 * @param options those of `fetch`, which each library types in its own way
 * @throws TypeError, as `fetch` does and openid-client passes on, when the response has more than {@link MAX_RESPONSE_BYTES}, once it is decompressed
 */
export async function fetchBounded(url: string, options: object): Promise<Response> {
  const res = await fetch(url, options);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of res.body ?? []) {
    size += chunk.length;
    // Leaving the loop cancels the response.
    if (size > MAX_RESPONSE_BYTES)
      throw new TypeError(`the response has more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new Response(size === 0 ? null : Buffer.concat(chunks), res);
}
