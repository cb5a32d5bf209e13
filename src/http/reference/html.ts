/** Escapes a text for HTML. */
export function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** Converts a line of the document's Markdown to HTML: only code between backticks is supported. */
export function inline(text: string): string {
  return escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

/** Converts the document's Markdown to HTML: paragraphs, and lists whose lines begin with a dash. */
export function paragraphs(text: string): string {
  return text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const [first = "", ...rest] = block.split(/\n(?=- )/);
      const isList = first.startsWith("- ");
      const items = isList ? [first, ...rest] : rest;
      const list = items.map((item) => `<li>${inline(item.slice(2))}</li>`).join("");
      return `${isList ? "" : `<p>${inline(first)}</p>`}${list && `<ul>${list}</ul>`}`;
    })
    .join("\n");
}

/** Contents of a page's frame. */
interface Page {
  readonly title: string;
  /** HTML between the frame's parts. */
  readonly body: string;
  /** True if the search field filters this page; on every other page the field leads to this one. */
  readonly isIndex?: boolean;
}

/** Returns a whole page of the reference. */
export function frame({ title, body, isIndex = false }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Chartroom</title>
<link rel="stylesheet" href="/docs/api/reference.css">
<script type="module" src="/docs/api/reference.js"></script>
</head>
<body>
<header>
<a href="/docs/api">Reference</a>
<a href="/docs/api/failures">Failures</a>
<a href="/openapi.json">OpenAPI</a>
<a href="/">Console</a>
<form action="/docs/api" role="search"><label>Search <input type="search" name="q" autocomplete="off" spellcheck="false"${isIndex ? ' id="search"' : ""}></label></form>
</header>
<main>
<h1>${escaped(title)}</h1>
${body}
</main>
</body>
</html>
`;
}
