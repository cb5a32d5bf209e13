import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { runCommand, stopAll, temporaryFolder } from "../harness/server.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

/** Returns the first message of a connection without its settings; a list of texts that end with zero bytes. */
function withoutOptions(message: Buffer): Buffer {
  const texts = message.toString("latin1", 8).split("\0").slice(0, -2);
  const kept = texts.filter((_, index) => texts[index - (index % 2)] !== "options");
  const body = Buffer.from(
    kept
      .map((text) => `${text}\0`)
      .join("")
      .concat("\0"),
    "latin1",
  );
  const begin = Buffer.concat([Buffer.alloc(4), message.subarray(4, 8), body]);
  begin.writeInt32BE(begin.length);
  return begin;
}

/** What a pooler answers that refuses the settings of a connection, in the engine's protocol. */
function refusal(): Buffer {
  const fields = ["SFATAL", "C08P01", "Munsupported startup parameter: options", ""].join("\0");
  const message = Buffer.concat([Buffer.from("E\0\0\0\0"), Buffer.from(fields), Buffer.alloc(1)]);
  message.writeInt32BE(message.length - 1, 1);
  return message;
}

test.each([
  [
    "drops",
    (client: Socket, first: Buffer, port: number) => {
      const database = connect(port, "127.0.0.1").on("error", () => {});
      database.write(withoutOptions(first));
      client.pipe(database).pipe(client);
    },
    "a pooler between this server and the database drops the settings of connections: name the database itself",
  ],
  [
    "refuses",
    (client: Socket) => client.end(refusal()),
    "a pooler does not pass on the settings of connections: name the database itself",
  ],
])(
  "a start by way of a pooler that %s the settings of connections says what to do",
  async (_, answer, sentence) => {
    const url = new URL(await emptyDatabase(cluster));
    const { port } = url;
    const pooler = createServer((client) => {
      client.on("error", () => {}).once("data", (first) => answer(client, first as Buffer, Number(port)));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => pooler.once("listening", resolve));
    url.port = String((pooler.address() as { readonly port: number }).port);
    const { code, stderr } = await runCommand(["serve", "--port", "0", "--data-dir", temporaryFolder()], {
      CHARTROOM_DATABASE_URL: url.href,
    });
    pooler.close();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^chartroom: /);
    expect(stderr).toContain(sentence);
  },
);
