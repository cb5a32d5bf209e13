import type { DocumentView, OperationView } from "./document.ts";
import { escaped, frame, inline, paragraphs } from "./html.ts";
import { bodyTable, typeOf } from "./schema-page.ts";

/** The origin in calls to paste; the script of the pages puts that of the page in its place. */
const ORIGIN = "http://127.0.0.1:8080";

/** Returns the page of a service; undefined for a name that is none. */
export function servicePage(document: DocumentView, name: string): string | undefined {
  const tag = document.tags.find((each) => each.name === name);
  if (!tag) return undefined;
  const operations = Object.entries(document.paths).filter(([, { post }]) => post.tags.includes(name));
  const sections = operations.map(([path, { post }]) => section(document, path, post));
  const links = operations.map(([path, { post }]) => {
    const [, operation] = post.operationId.split("_");
    return `<li><a href="#${operation}" title="${escaped(path)}">${operation}</a> ${inline(post.summary)}</li>`;
  });
  return frame({
    title: name,
    body: `${paragraphs(tag.description)}<ul>${links.join("\n")}</ul>${sections.join("\n")}`,
  });
}

function section(document: DocumentView, path: string, operation: OperationView): string {
  const [, name = ""] = operation.operationId.split("_");
  const request = operation.requestBody.content["application/json"];
  const answer = operation.responses["200"]?.content["application/json"];
  const example =
    answer?.example === undefined
      ? ""
      : `<details><summary>An answer</summary><pre>${escaped(JSON.stringify(answer.example, undefined, 2))}</pre></details>`;
  const key = operation.parameters.some(({ $ref }) => $ref.endsWith("/IdempotencyKey"))
    ? "<p>Takes <code>Idempotency-Key</code>, with which the call is safe to repeat.</p>"
    : "<p>Changes nothing.</p>";
  return `<section id="${name}">
<h2>${name}${operation.deprecated ? " <small>deprecated</small>" : ""}</h2>
<p><code>POST /api${escaped(path)}</code></p>
${paragraphs(operation.description)}
${key}
<pre class="call">${escaped(curl(path, request.example))}</pre>
<h3>Request, ${typeOf(request.schema)}</h3>
${bodyTable(document, request.schema)}
<h3>Answer, ${typeOf(answer?.schema ?? {})}</h3>
${bodyTable(document, answer?.schema ?? {})}
${example}
</section>`;
}

/** Returns a call of an operation to paste into a shell in which TOKEN is set. */
export function curl(path: string, example: unknown = {}): string {
  const body = JSON.stringify(example, undefined, 2).replaceAll("'", "'\\''");
  return `curl ${ORIGIN}/api${path} \\
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '${body}'`;
}
