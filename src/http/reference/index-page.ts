import type { DocumentView } from "./document.ts";
import { escaped, frame, inline, paragraphs } from "./html.ts";

/** Returns the page on which everything else is found. */
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

/** Returns the page of what a call may fail with. */
export function failuresPage({ components }: DocumentView): string {
  const sections = Object.entries(components.responses).map(
    ([name, { description }]) =>
      `<section><h2>HTTP ${escaped(name.replace("Error", ""))}</h2>${paragraphs(description)}</section>`,
  );
  const body = `<p>A failed call answers with <a href="/docs/api/types/Error">Error</a>, one of whose details has the reason.</p>
${sections.join("\n")}`;
  return frame({ title: "Failures", body });
}
