import { type ReachableServer, runHostedCommand } from "./server.ts";

/** The secret of a link that the command line prints for a member. */
export async function signInLink(server: Pick<ReachableServer, "dataDir">, who: string): Promise<string> {
  const { stdout, stderr } = await runHostedCommand(["member", "sign-in", who, "--data-dir", server.dataDir]);
  const secret = /\/sign-in#(cr_lnk_\w+)\n$/.exec(stdout)?.[1];
  if (secret === undefined) throw new Error(`no link was printed: ${stdout}${stderr}`);
  return secret;
}

/** The origin of a server's sessions, as its pages send it. */
export const originOf = ({ url }: Pick<ReachableServer, "url">): string =>
  url.replace("127.0.0.1", "chartroom.localhost");

/** Sends what the sign-in page sends. */
export async function page(
  server: Pick<ReachableServer, "url">,
  path:
    | "person"
    | "session"
    | "device/request"
    | "device/decide"
    | "organizations"
    | "organization"
    | "invite",
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  const res = await fetch(`${server.url}/sign-in/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: originOf(server), ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: res.status, header: res.headers, body: JSON.parse(await res.text()) };
}

/** Signs in as the page does; the header with which a browser sends the session. */
export async function signIn(
  server: Pick<ReachableServer, "url">,
  secret: string,
): Promise<{ readonly cookie: string }> {
  const answer = await page(server, "session", { secret });
  const [cookie = ""] = answer.header.get("set-cookie")?.split(";") ?? [];
  if (cookie === "") throw new Error(`nobody was signed in: ${JSON.stringify(answer.body)}`);
  return { cookie };
}
