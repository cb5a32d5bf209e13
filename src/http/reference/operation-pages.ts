import type { DocumentView, OperationView } from "./document.ts";
import { escaped, frame, inline, paragraphs } from "./html.ts";
import { bodyTable, typeOf } from "./schema-page.ts";

/** The origin in example calls; the script of the pages replaces it by the origin of the page. */
const ORIGIN = "http://127.0.0.1:8080";

/** Returns the index page, which links to all others. */
export function indexPage({ info, tags, paths, components }: DocumentView): string {
  const services = tags.map(({ name }) => {
    const operations = Object.values(paths).filter(({ post }) => post.tags.includes(name));
    const items = operations.map(({ post }) => {
      const operation = post.operationId.slice(name.length + 1);
      const words = escaped(`${post.operationId} ${post.description}`.toLowerCase());
      return `<li data-words="${words}"><a href="/docs/api/${name}#${operation}">${operation}</a> ${inline(post.summary)}</li>`;
    });
    return `<section><h2><a href="/docs/api/${name}">${name}</a></h2><ul>${items.join("\n")}</ul></section>`;
  });
  const types = Object.entries(components.schemas)
    .filter(([name]) => !/_InRequest$|(?:Request|Response)$|^Error$/.test(name))
    .map(([name, { properties = {}, enum: values = [] }]) => {
      const words = escaped([name, ...Object.keys(properties), ...values].join(" ").toLowerCase());
      return `<li data-words="${words}"><a href="/docs/api/types/${name}">${name}</a></li>`;
    });
  const body = `<p>Release ${escaped(info.version)}</p>
<p id="count" role="status"></p>
<details id="about"><summary>How operations are called</summary>${paragraphs(info.description)}</details>
${services.join("\n")}
<section><h2>Messages and enums</h2><ul class="types">${types.join("\n")}</ul></section>`;
  return frame({ title: "API reference", body, isIndex: true });
}

/** Returns the page of the errors that a call may fail with. */
export function failuresPage({ components }: DocumentView): string {
  const sections = Object.entries(components.responses).map(
    ([name, { description }]) =>
      `<section><h2>HTTP ${escaped(name.replace("Error", ""))}</h2>${paragraphs(description)}</section>`,
  );
  const body = `<p>A failed call answers with <a href="/docs/api/types/Error">Error</a>, one of whose details has the reason.</p>
${sections.join("\n")}`;
  return frame({ title: "Failures", body });
}

/** Returns the page of a service; undefined for an unknown name. */
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

/** Returns a curl command that calls an operation, to paste into a shell in which TOKEN is set. */
export function curl(path: string, example: unknown = {}): string {
  const body = JSON.stringify(example, undefined, 2).replaceAll("'", "'\\''");
  return `curl ${ORIGIN}/api${path} \\
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '${body}'`;
}
