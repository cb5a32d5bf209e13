import { toStored } from "../text.ts";

/** Length of the pieces of a text that its index holds, in characters. */
const GRAM_LENGTH = 3;

/** Maximum number of pieces that a query searches for: each costs the time to read its list. */
const MAX_QUERY_GRAMS = 12;

/** Number of overlapping pieces at the end of the text, where texts and ids differ most. */
const END_GRAMS = 4;

/** Length of the prefix of each piece, which separates organizations: the end of the organization's id. */
const OWNER_LENGTH = 4;

/**
 * Texts of one or two characters that most projects contain, since their ids do: hexadecimal digits and single
 * hyphens. Their lists in the index would be long and not selective.
 */
const IN_MOST_IDS = /^(?:[0-9a-f]{1,2}|-[0-9a-f]?|[0-9a-f]-)$/;

/**
 * Creates the function whose results are indexed: every three consecutive characters of a text, and the last two and
 * the last one, each prefixed with the end of the organization's id. A text of one or two characters is thus the start
 * of a piece wherever it occurs. Pieces of one organization do not lead to projects of another, except for the few
 * organizations whose ids end alike. The cost keeps the planner from calling the function for each row instead of
 * reading the index.
 */
export const PROJECT_GRAMS = `
create or replace function project_grams(organization_id text, search_text text) returns tsvector
language plpgsql immutable strict parallel safe cost 100000 as $$
declare
  owner constant text := right(organization_id, ${OWNER_LENGTH});
  grams text[] := '{}';
  next text;
  two text := owner;
  one text := owner;
begin
  foreach next in array string_to_array(search_text, null) loop
    grams := grams || (two || next);
    two := one || next;
    one := owner || next;
  end loop;
  return array_to_tsvector(grams || two || one);
end $$;
`;

/**
 * Returns the query, of the engine's type tsquery, for the projects of an organization that may contain a text: all
 * pieces at the end, and those before without overlap. One rare piece anywhere makes it fast.
 * @param search not empty
 * @returns undefined for a text that most projects contain, and for one of which no piece is stored unchanged
 */
export function gramQuery(organizationId: string, search: string): string | undefined {
  if (IN_MOST_IDS.test(search)) return undefined;
  const owner = [...organizationId].slice(-OWNER_LENGTH).join("");
  const characters = [...search];
  if (characters.length < GRAM_LENGTH)
    return toStored(search) === search ? `${quoted(owner + search)}:*` : undefined;
  const grams = characters
    .slice(GRAM_LENGTH - 1)
    .map((_, start) => characters.slice(start, start + GRAM_LENGTH).join(""));
  const asked = grams.filter((gram, place) => {
    const before = grams.length - END_GRAMS - place;
    return (before <= 0 || before % GRAM_LENGTH === 0) && toStored(gram) === gram;
  });
  if (asked.length === 0) return undefined;
  return [...new Set(asked)]
    .slice(-MAX_QUERY_GRAMS)
    .map((gram) => quoted(owner + gram))
    .join(" & ");
}

const quoted = (text: string) => `'${text.replace(/['\\]/g, "$&$&")}'`;
