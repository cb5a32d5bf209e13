/** The parts that the bench uses of packages that are only installed in this folder. */
declare module "graphile-worker" {
  interface Helpers {
    withPgClient<T>(
      fn: (client: { query(text: string, values: readonly unknown[]): Promise<unknown> }) => Promise<T>,
    ): Promise<T>;
  }
  interface Options {
    readonly connectionString: string;
    readonly maxPoolSize: number;
    readonly concurrency: number;
    readonly noHandleSignals: boolean;
    readonly logger: unknown;
    readonly taskList: Readonly<
      Record<string, (payload: { readonly id: number }, helpers: Helpers) => unknown>
    >;
  }
  export class Logger {
    constructor(factory: () => () => void);
  }
  export function runMigrations(options: { readonly connectionString: string }): Promise<void>;
  export function run(options: Options): Promise<{ stop(): Promise<void> }>;
}

declare module "bullmq" {
  interface Connection {
    readonly connection: { readonly host: string; readonly port: number };
  }
  export class Queue {
    constructor(name: string, options: Connection);
    addBulk(jobs: readonly { readonly name: string; readonly data: object }[]): Promise<unknown>;
    close(): Promise<void>;
  }
  export class Worker {
    constructor(
      name: string,
      work: (job: { log(row: string): Promise<number> }) => Promise<void>,
      options: Connection & { readonly concurrency: number; readonly autorun: boolean },
    );
    on(event: "completed" | "failed", listener: () => void): this;
    run(): Promise<void>;
    close(): Promise<void>;
  }
}
