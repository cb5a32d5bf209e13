import pg from "pg";

/**
 * Connections for short reads. The queries of one turn of the event loop go to one connection in one piece, without
 * waiting for each other's answers; that takes half of the processor time of a pool that gives each query a connection
 * of its own. A query that takes long holds up those behind it, so lists that search have a pool.
 */
export class Pipelines {
  readonly #pipelines: readonly Pipeline[];
  /** The connection of the present turn. */
  #present: Pipeline | undefined;

  constructor(config: pg.ClientConfig, connections: number) {
    this.#pipelines = Array.from({ length: connections }, () => new Pipeline(config));
  }

  /** Runs a query; prepared on its connection when it has a name. @throws the engine's error, or the driver's */
  query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    this.#present ??= this.#begin();
    return this.#present.query(query);
  }

  /** Waits for the queries under way and ends the connections. */
  async end(): Promise<void> {
    await Promise.all(this.#pipelines.map((each) => each.end()));
  }

  /** Returns the connection with the fewest queries under way, for all queries of this turn. */
  #begin(): Pipeline {
    const chosen = this.#pipelines.reduce((least, each) => (each.underWay < least.underWay ? each : least));
    const send = chosen.hold();
    setImmediate(() => {
      this.#present = undefined;
      send();
    });
    return chosen;
  }
}

/** One connection, which is made again when it breaks. */
class Pipeline {
  readonly #config: pg.ClientConfig;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;
  #isEnded = false;
  underWay = 0;

  constructor(config: pg.ClientConfig) {
    this.#config = { ...config, pipeline: true };
  }

  async query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    this.underWay += 1;
    try {
      return await (this.#client ?? (await this.#open())).query(query);
    } finally {
      this.underWay -= 1;
    }
  }

  /** Keeps what is written from being sent. @returns the function that sends it */
  hold(): () => void {
    const stream = this.#client?.connection.stream;
    stream?.cork();
    return () => stream?.uncork();
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#opening?.catch(() => {});
    await this.#client?.end();
  }

  #open(): Promise<pg.Client> {
    if (this.#isEnded) throw new Error("Connection terminated: the store is closed");
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(this.#config);
    const lost = () => {
      if (this.#client === client) this.#client = undefined;
    };
    // Its queries fail as well; the event alone would end the process.
    client.on("error", lost);
    client.on("end", lost);
    await client.connect();
    this.#client = client;
    return client;
  }
}
