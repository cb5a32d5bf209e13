import type { ReactNode } from "react";
import "./work.css";

/**
 * Matches links and other inline markup in texts that agents write. Links lead only to web pages and send no
 * referrer. No alternative matches past a character that may begin another one, so the time is linear in the length
 * of every text.
 */
const TOKEN =
  /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\[([^[\]\n]+)\]\((https?:\/\/[^\s)[\]]+)\)|(https?:\/\/[^\s<>"')\]]+)/g;

/**
 * Shows an agent's text as prose: paragraphs, lists, headings, code and links. It creates elements, never HTML, so
 * that whatever an agent writes remains text.
 */
export function Markdown({ text }: { readonly text: string }) {
  return <div className="prose">{blocksOf(text)}</div>;
}

function blocksOf(text: string): ReactNode[] {
  const nodes: ReactNode[] = [];
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const fence = /^ {0,3}(```+|~~~+)/.exec(line)?.[1];
    if (fence) {
      const end = lines.findIndex((each, index) => index > at && each.trimStart().startsWith(fence));
      const last = end === -1 ? lines.length : end;
      nodes.push(
        <pre key={at} className="code">
          {lines.slice(at + 1, last).join("\n")}
        </pre>,
      );
      at = last + 1;
      continue;
    }
    const begin = at;
    const isItem = (each: string) => /^\s*([-*]|\d+[.)])\s+/.test(each);
    if (isItem(line)) {
      while (at < lines.length && isItem(lines[at] ?? "")) at++;
      const items = lines.slice(begin, at).map((each) => each.replace(/^\s*([-*]|\d+[.)])\s+/, ""));
      const List = /^\s*\d/.test(line) ? "ol" : "ul";
      nodes.push(
        <List key={begin}>
          {items.map((item, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a text never changes its lines
            <li key={index}>{inline(item)}</li>
          ))}
        </List>,
      );
      continue;
    }
    if (line.trim() === "") {
      at++;
      continue;
    }
    const heading = /^#{1,6}\s+(.*)/.exec(line)?.[1];
    if (heading !== undefined) {
      nodes.push(
        <p key={at}>
          <strong>{inline(heading)}</strong>
        </p>,
      );
      at++;
      continue;
    }
    const isProse = (each: string) =>
      each.trim() !== "" && !isItem(each) && !/^(#{1,6}\s| {0,3}(```|~~~))/.test(each);
    while (at < lines.length && isProse(lines[at] ?? "")) at++;
    if (at === begin) at++;
    nodes.push(<p key={begin}>{inline(lines.slice(begin, at).join("\n"))}</p>);
  }
  return nodes;
}

function inline(text: string): ReactNode[] {
  const nodes: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, code, strong, label, address, bare] = match;
    nodes.push(text.slice(from, match.index));
    from = match.index + whole.length;
    const key = match.index;
    if (code !== undefined) nodes.push(<code key={key}>{code}</code>);
    else if (strong !== undefined) nodes.push(<strong key={key}>{strong}</strong>);
    else {
      nodes.push(
        <a key={key} href={address ?? bare} target="_blank" rel="noopener noreferrer nofollow">
          {label ?? bare}
        </a>,
      );
    }
  }
  nodes.push(text.slice(from));
  return nodes;
}
