/** A field as the wire reference describes it. */
export interface WireField {
  readonly number: number;
  readonly name: string;
  readonly optional: boolean;
  /** Such as `string`, `repeated Project`, `map<string, string>`, without the package. */
  readonly type: string;
  readonly oneof: string | undefined;
  readonly deprecated: boolean;
  /** Such as `required`, `string.uuid=true` or `cel.name_length=EXPRESSION -> MESSAGE`. */
  readonly rules: readonly string[];
}

export interface WireMessage {
  readonly kind: "message";
  readonly name: string;
  readonly specified: boolean;
  /** The heading above it, such as `project`. */
  readonly resource: string;
  readonly fields: WireField[];
  readonly reserved: number[];
  readonly requiredOneofs: string[];
  readonly rules: string[];
}

export interface WireEnum {
  readonly kind: "enum";
  readonly name: string;
  readonly specified: boolean;
  readonly resource: string;
  readonly values: { readonly number: number; readonly name: string; readonly deprecated: boolean }[];
  readonly reserved: number[];
}

export interface WireOperation {
  readonly specified: boolean;
  /** Such as `ProjectService/GetProject`. */
  readonly name: string;
  readonly input: string;
  readonly output: string;
}

export interface WirePage {
  readonly operations: readonly WireOperation[];
  readonly types: readonly (WireMessage | WireEnum)[];
}

/**
 * Parses a page of the wire reference. Fields of the second part are not marked: they count as
 * added.
 *
 * @throws on a line of an unknown form
 */
export function parseWirePage(page: string): WirePage {
  const operations: WireOperation[] = [];
  const types: (WireMessage | WireEnum)[] = [];
  let resource = "";
  // Text before the first heading of a list or resource is prose.
  for (const line of page.slice(page.indexOf("\n# Operations")).split("\n")) {
    const heading = /^# (\w+)(?:\.proto)?$/.exec(line);
    const operation = /^(?:(specified|added) +)?(\w+\/\w+) {2}(\w+) -> (?:stream )?(\w+)$/.exec(line);
    const type = /^(message|enum) (\S+)(?: {2}\((specified|added)\))?$/.exec(line);
    if (line.trim() === "") continue;
    if (heading) resource = heading[1] ?? "";
    else if (operation) {
      const [, origin, name = "", input = "", output = ""] = operation;
      operations.push({ specified: origin === "specified", name, input, output });
    } else if (type) {
      const [, kind, name = "", origin] = type;
      const head = { name, specified: origin === "specified", resource };
      types.push(
        kind === "enum"
          ? { kind: "enum", ...head, values: [], reserved: [] }
          : { kind: "message", ...head, fields: [], reserved: [], requiredOneofs: [], rules: [] },
      );
    } else {
      const last = types.at(-1);
      const understood = last?.kind === "enum" ? enumLine(last, line) : last && messageLine(last, line);
      if (!understood) throw new Error(`the wire reference has a line of no known form: ${line}`);
    }
  }
  return { operations, types };
}

function enumLine(each: WireEnum, line: string): boolean {
  const reserved = /^ {2}(\d+) {2}reserved$/.exec(line);
  const value = /^ {2}(\d+) {2}(\w+)(?: {2,3}(deprecated))?$/.exec(line);
  if (reserved) each.reserved.push(Number(reserved[1]));
  else if (value)
    each.values.push({ number: Number(value[1]), name: value[2] ?? "", deprecated: !!value[3] });
  return value !== null;
}

const FIELD =
  /^ {2}(\d+) {2}(\w+): (optional )?(repeated [\w.]+|map<\w+, [\w.]+>|[\w.]+)(?: {2}oneof (\w+))?( {2}deprecated)?(?: {3}\[(.*)\])?$/;

function messageLine(message: WireMessage, line: string): boolean {
  const field = FIELD.exec(line);
  const reserved = /^ {2}reserved ([\d, ]+)$/.exec(line);
  const oneof = /^ {2}oneof (\w+): required$/.exec(line);
  const rule = /^ {2}rule: (.+)$/.exec(line);
  if (field) {
    const [, number, name = "", optional, type = "", oneofName, deprecated, rules = ""] = field;
    message.fields.push({
      number: Number(number),
      name,
      optional: !!optional,
      type,
      oneof: oneofName,
      deprecated: !!deprecated,
      rules: rules.split("; ").filter(Boolean).flatMap(ruleAtoms),
    });
  } else if (reserved) message.reserved.push(...(reserved[1] ?? "").split(", ").map(Number));
  else if (oneof) message.requiredOneofs.push(oneof[1] ?? "");
  else if (rule) message.rules.push(...ruleAtoms(rule[1] ?? ""));
  else return false;
  return true;
}

/** Turns `string {minLen:1,maxLen:80}` into `string.minLen=1` and `string.maxLen=80`. */
function ruleAtoms(rule: string): string[] {
  const cel = /^cel (\w+): (.+?)(?: {2}-> "(.+)")?$/.exec(rule);
  if (cel) return [`cel.${cel[1]}=${cel[2]}${cel[3] === undefined ? "" : ` -> ${cel[3]}`}`];
  const standard = /^(\w+) \{(.*)\}$/.exec(rule);
  return standard ? pairAtoms(standard[1] ?? "", standard[2] ?? "") : [rule];
}

/**
 * Parses pairs such as `maxItems:25,items:{string:{uuid:true}}`; a value may be a list, a group or
 * any text.
 */
function pairAtoms(path: string, pairs: string): string[] {
  const found = /^(\w+):(?:\[([^\]]*)\](?=,|$)|(\{.*\})|("(?:[^"\\]|\\.)*")|([^,{}]*))(?:,(.*))?$/.exec(
    pairs,
  );
  if (!found) throw new Error(`the wire reference has a rule of no known form: ${pairs}`);
  const [, name, list, group, quoted, plain, rest] = found;
  const here = `${path}.${name}`;
  const text = quoted === undefined ? plain : JSON.parse(quoted);
  const atoms = group !== undefined ? pairAtoms(here, group.slice(1, -1)) : [`${here}=${list ?? text ?? ""}`];
  return rest ? [...atoms, ...pairAtoms(path, rest)] : atoms;
}
