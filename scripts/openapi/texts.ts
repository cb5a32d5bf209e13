import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";

/** Returns the comment above an element as paragraphs and lists of Markdown; empty when there is none. */
export function textOf(element: Exclude<AnyDesc, DescFile>): string {
  const comment = getComments(element).leading ?? "";
  const paragraphs = comment.split(/\n\s*\n/).map((paragraph) =>
    paragraph
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .reduce((text, line) => {
        if (text === "") return line;
        return /^(?:[-*]|\d+\.) /.test(line) ? `${text}\n${line}` : `${text} ${line}`;
      }, ""),
  );
  return paragraphs.filter((paragraph) => paragraph !== "").join("\n\n");
}

/** Returns the first sentence of a text, without its full stop. */
export function firstSentence(text: string): string {
  const [first = ""] = text.split(/(?<=[.:;])\s|\n/);
  return first.replace(/[.:;]$/, "");
}

/** Joins the parts of a description that are there. */
export function described(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part).join("\n\n");
}
