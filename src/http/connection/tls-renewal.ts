import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { TlsFiles } from "./tls-server.ts";

/** Interval at which the certificate and key files are read: the maximum delay until a renewal is in use. */
const CHECK_INTERVAL_MS = 10_000;

export interface TlsRenewalOptions {
  readonly certFile: string;
  readonly keyFile: string;
  /** The contents that are in use at the start. */
  readonly used: TlsFiles;
  /** Uses other files for new connections. @throws when they do not belong together */
  readonly use: (files: TlsFiles) => void;
  /** Called when a certificate is in use, with the end of its validity. */
  readonly onRenewed: (validTo: Date) => void;
  /** Called once for each content that cannot be used; the previous files stay in use. */
  readonly onFailure: (error: Error) => void;
}

/**
 * Reloads the certificate of a listener when its files change. It compares contents, not times, since programs that
 * renew certificates replace files, folders or links, and never the two files at the same moment.
 */
export class TlsRenewal {
  readonly #options: TlsRenewalOptions;
  #used: TlsFiles;
  #failed = "";
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;

  constructor(options: TlsRenewalOptions) {
    this.#options = options;
    this.#used = options.used;
  }

  /** Starts to read the files every {@link CHECK_INTERVAL_MS}. */
  start(): void {
    this.#timer = setInterval(() => void this.renew(), CHECK_INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads the files now; resolves when their contents are in use or were found unusable. */
  async renew(): Promise<void> {
    // One read at a time: otherwise an earlier read could bring back older files.
    while (this.#renewing) await this.#renewing;
    this.#renewing = this.#read().finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
  }

  async #read(): Promise<void> {
    const { certFile, keyFile, use, onRenewed } = this.#options;
    try {
      const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
      if (cert.equals(bytesOf(this.#used.cert)) && key.equals(bytesOf(this.#used.key))) {
        this.#failed = "";
        return;
      }
      use({ cert, key });
      this.#used = { cert, key };
      this.#failed = "";
      onRenewed(new X509Certificate(cert).validToDate);
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#failed) this.#options.onFailure(error as Error);
      this.#failed = message;
    }
  }
}

function bytesOf(content: string | Buffer): Buffer {
  return typeof content === "string" ? Buffer.from(content) : content;
}
