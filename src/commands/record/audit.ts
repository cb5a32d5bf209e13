import { type DataConfig, keyFileOf } from "../../config/config.ts";
import type { AuditAnchor } from "../../domain/audit-anchor.ts";
import type { AuditMac, ChainReport } from "../../domain/record/audit-verification.ts";
import { auditMacOf, loadKeys } from "../../keys.ts";
import { verifyChains } from "../../store/record/audit-chain.ts";
import { requireKeyFile } from "../open-data.ts";
import { openDataReadOnly } from "../open-read-only.ts";

/** The maximum time of a Date, in milliseconds since 1970 UTC. */
const LAST_MS = 8.64e15;

/** The result of `chartroom audit verify`. */
export interface Verdict {
  readonly holds: boolean;
  /** A line for each chain and a summary, for the person at the terminal. */
  readonly text: string;
}

/**
 * Verifies the audit chains of a data folder, a copy of one, or the database in the settings. Needs no server and
 * changes no row.
 *
 * @throws StartError when the folder or the key file cannot be read
 */
export async function verifyAudit(config: DataConfig): Promise<Verdict> {
  const mac = loadAuditMac(config);
  const store = await openDataReadOnly(config);
  try {
    const chains = await verifyChains(store.reader, mac);
    const broken = chains.filter(({ broken }) => broken).length;
    const sum = broken === 0 ? "every chain holds" : `${broken} of ${chains.length} chains are broken`;
    return { holds: broken === 0, text: `${[...chains.map(lineOf), sum].join("\n")}\n` };
  } finally {
    await store.close();
  }
}

/** Returns the line of a chain in the report. */
export function lineOf({
  organizationId,
  rows,
  validRows,
  unhashed,
  hash,
  broken,
  removal,
  anchor,
}: ChainReport): string {
  const chain = organizationId === null ? "installation" : `organization ${organizationId}`;
  if (removal) {
    const { at, actorId, head } = removal;
    const ended = `removed at ${new Date(at).toISOString()} by ${actorId} after ${head.sequence} rows`;
    return [`${chain}: ${ended}`, ...(hash ? [formatHash(hash)] : [])].join("; ");
  }
  const parts = [`${chain}: ${rows} rows, ${validRows} hold`];
  if (anchor) parts.push(anchorText(anchor));
  if (unhashed > 0) parts.push(`${unhashed} of them from the first release, without a hash`);
  if (broken) parts.push(`breaks at row ${broken.sequence}: ${broken.problem}`);
  else if (hash) parts.push(formatHash(hash));
  return parts.join("; ");
}

function anchorText({ sequence, until_sequence, chain_hash, at, key_id }: AuditAnchor): string {
  if (sequence === 0) return `the rows up to ${until_sequence} are about to be removed`;
  const until = until_sequence > sequence ? `, those up to ${until_sequence} are about to be` : "";
  const hash = chain_hash === null ? "" : ` with the hash ${Buffer.from(chain_hash).toString("hex")}`;
  // A forged row may have a time outside the range of Date.
  const time = Math.abs(at) > LAST_MS ? `${at}` : new Date(at).toISOString();
  const sealed = `anchored at ${time} with the key ${key_id}`;
  return `the rows up to ${sequence}${hash} were removed by retention${until}, ${sealed}`;
}

function formatHash(hash: Uint8Array): string {
  return `last hash ${Buffer.from(hash).toString("hex")}`;
}

/** Loads the keys. A missing key file must not be created here, because a new key verifies nothing. */
export function loadAuditMac(config: DataConfig): AuditMac {
  requireKeyFile(config);
  return auditMacOf(loadKeys(keyFileOf(config)));
}
