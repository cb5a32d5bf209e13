import { percentile } from "./figures.ts";
import type { PeerName } from "./peers/start-peer.ts";
import { type Measured, type Measures, measuresKey } from "./rounds.ts";

/** A bound on the ratio between the server and another one. */
export interface Ratio {
  readonly name: string;
  readonly what: string;
  readonly case: string;
  readonly against: PeerName;
  /** Processor time of the other server divided by ours, or our requests per second divided by the other's. */
  readonly measure: "processor" | "rate";
  readonly atLeast: number;
  readonly aim?: number;
}

/** In the order of the table. Its other rows are measured as data grows (bench/growth). */
export const RATIOS: readonly Ratio[] = [
  ratio("get/ceiling", "GetProject", "get", "ceiling", "processor", 0.65, 0.8),
  ratio("list25/ceiling", "ListProjects of 25", "list25", "ceiling", "processor", 0.75, 0.9),
  ratio("get/fastify", "GetProject", "get", "fastify", "processor", 1.1, 1.4),
  ratio("list25/fastify", "ListProjects of 25", "list25", "fastify", "processor", 1.5, 1.8),
  ratio("get/connect-node", "GetProject", "get", "connect-node", "processor", 4.5, 7),
  ratio("list25/connect-node", "ListProjects of 25", "list25", "connect-node", "processor", 4, 5),
  ratio("binary-get/grpc-js", "GetProject in binary", "binary-get", "grpc-js", "processor", 1, 2),
  ratio("grpc-get/grpc-js", "GetProject by gRPC", "grpc-get", "grpc-js", "processor", 1, 1.5),
  ratio("create32/one-commit-each", "creates, 32 connections", "create32", "one-commit-each", "rate", 2, 3),
  ratio("create32/connect-node", "creates, 32 connections", "create32", "connect-node", "rate", 4, 6),
  ratio("create1/one-commit-each", "creates, 1 connection", "create1", "one-commit-each", "rate", 0.95, 1),
];

export function ratio(
  name: string,
  what: string,
  caseName: string,
  against: PeerName,
  measure: Ratio["measure"],
  atLeast: number,
  aim?: number,
): Ratio {
  return { name, what, case: caseName, against, measure, atLeast, ...(aim !== undefined && { aim }) };
}

/** Returns a ratio for each round; empty when it was not measured. */
export function ratioRounds({ case: name, against, measure }: Ratio, measures: Measures): number[] {
  const ours = measures.get(measuresKey(name, "ours")) ?? [];
  const others = measures.get(measuresKey(name, against)) ?? [];
  return ours.flatMap((own, round) => {
    const other = others[round];
    return other ? [measure === "processor" ? other.processorUs / own.processorUs : rateOf(own, other)] : [];
  });
}

function rateOf(own: Measured, other: Measured): number {
  return own.perSecond / other.perSecond;
}

export const median = (values: readonly number[]) => percentile(values, 50);
