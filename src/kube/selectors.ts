import { KubeError } from "./errors.ts";
import { parseRequirements, type LabelOperator, type LabelRequirement } from "./selector-parser.ts";

/** Requirements on labels, all of which must hold; an empty one selects everything. Sorted by key. */
export type LabelSelector = readonly LabelRequirement[];

/** `LabelSelector` as it stands in API objects, e.g. in a claim's `spec.selector`. */
export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?:
    | readonly {
        readonly key: string;
        /** In, NotIn, Exists or DoesNotExist. */
        readonly operator: string;
        readonly values?: readonly string[] | undefined;
      }[]
    | undefined;
}

/** The text of a `labelSelector` parameter: `app=db,tier in (a,b),!canary,weight>5`. */
export function parseLabelSelector(text: string): LabelSelector {
  return sorted(parseRequirements(text).map(createRequirement));
}

export function fromLabelSelectorObject({
  matchLabels = {},
  matchExpressions = [],
}: LabelSelectorObject): LabelSelector {
  const labels = Object.entries(matchLabels).map(([key, value]) =>
    createRequirement({ key, operator: "=", values: [value] }),
  );
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    const known = EXPRESSION_OPERATORS.get(operator);
    if (known === undefined) {
      throw new KubeError(
        "BadInput",
        `matchExpressions of "${key}": "${operator}" is not a valid label selector operator`,
      );
    }
    return createRequirement({ key, operator: known, values });
  });
  return sorted([...labels, ...expressions]);
}

/** A label that is absent satisfies `!=`, `notin` and `!exists`, and nothing else. */
export function matchesLabels(
  selector: LabelSelector,
  labels: Readonly<Record<string, string>> | null | undefined,
): boolean {
  return selector.every(({ key, operator, values }) => {
    // `constructor` is a valid label key: only own members are labels.
    const value = labels && Object.hasOwn(labels, key) ? labels[key] : undefined;
    return matchesValue(operator, values, value);
  });
}

/** Text that `parseLabelSelector` reads as the same selector. */
export function formatLabelSelector(selector: LabelSelector): string {
  return selector.map(formatRequirement).join(",");
}

const EXPRESSION_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ["In", "in"],
  ["NotIn", "notin"],
  ["Exists", "exists"],
  ["DoesNotExist", "!exists"],
]);

function sorted(requirements: LabelRequirement[]): LabelSelector {
  return requirements.sort((a, b) => (a.key === b.key ? 0 : a.key < b.key ? -1 : 1));
}

function matchesValue(
  operator: LabelOperator,
  values: readonly string[],
  value: string | undefined,
): boolean {
  switch (operator) {
    case "=":
    case "in":
      return value !== undefined && values.includes(value);
    case "!=":
    case "notin":
      return value === undefined || !values.includes(value);
    case "exists":
      return value !== undefined;
    case "!exists":
      return value === undefined;
    case ">":
    case "<": {
      const [found, bound] = [parseInt64(value), parseInt64(values[0])];
      if (found === undefined || bound === undefined) return false;
      return operator === ">" ? found > bound : found < bound;
    }
  }
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case "exists":
      return key;
    case "!exists":
      return `!${key}`;
    case "in":
    case "notin":
      return `${key} ${operator} (${values.join(",")})`;
    case "=":
    case "!=":
    case ">":
    case "<":
      return `${key}${operator}${values[0] ?? ""}`;
  }
}

/** Checks key and values; whatever gets past this can match something. */
function createRequirement({ key, operator, values }: LabelRequirement): LabelRequirement {
  const problem =
    labelKeyProblem(key) ?? countProblem(operator, values.length) ?? valueProblem(operator, values);
  if (problem !== undefined)
    throw new KubeError("BadInput", `unable to parse requirement: "${key}": ${problem}`);
  return { key, operator, values: [...new Set(values)].sort() };
}

function countProblem(operator: LabelOperator, count: number): string | undefined {
  if ((operator === "in" || operator === "notin") && count === 0) {
    return "for 'in', 'notin' operators, values set can't be empty";
  }
  if ((operator === "exists" || operator === "!exists") && count > 0) {
    return "values set must be empty for exists and does not exist";
  }
  return undefined;
}

function valueProblem(operator: LabelOperator, values: readonly string[]): string | undefined {
  if ((operator === ">" || operator === "<") && parseInt64(values[0]) === undefined) {
    return "for 'Gt', 'Lt' operators, the value must be an integer";
  }
  for (const value of values) {
    const problem = labelValueProblem(value);
    if (problem !== undefined) return `value "${value}": ${problem}`;
  }
  return undefined;
}

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME_RULE =
  "at most 63 letters, digits, '-', '_' or '.', and must start and end with a letter or digit";

/** What is wrong with a label or annotation key, `[prefix/]name`; undefined if nothing. */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  if (prefix !== undefined && (prefix.length > 253 || !SUBDOMAIN.test(prefix))) {
    return "prefix part must be a DNS subdomain of at most 253 lower case letters, digits, '-' or '.'";
  }
  return NAME.test(key.slice(slash + 1)) ? undefined : `name part must be ${NAME_RULE}`;
}

/** What is wrong with a label value; undefined if nothing. The empty value is a value. */
export function labelValueProblem(value: string): string | undefined {
  return value === "" || NAME.test(value) ? undefined : `a label value must be empty or ${NAME_RULE}`;
}

const INTEGER = /^[+-]?[0-9]{1,63}$/;

/** As Go reads an int64: a sign and leading zeros are fine, overflow is not. */
function parseInt64(text: string | undefined): bigint | undefined {
  if (text === undefined || !INTEGER.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
