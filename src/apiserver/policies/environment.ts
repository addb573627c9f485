import type { Environment } from "../../cel/environment.ts";
import { CelError, describeAt } from "../../cel/errors.ts";
import { Functions } from "../../cel/functions.ts";
import { ADDRESSES } from "../../cel/library/addresses.ts";
import { STANDARD } from "../../cel/library/standard.ts";
import { URLS } from "../../cel/library/urls.ts";
import { compile, type Program } from "../../cel/program.ts";
import { DYN, formatType, listOf, parseType, STRING, type Type } from "../../cel/types.ts";
import { JSON_PATCH_FUNCTIONS } from "./json-patch.ts";
import { QUANTITIES } from "./quantities.ts";

/** What an expression of a policy may name, and what it must come to. */
export interface ExpressionContext {
  readonly hasParams: boolean;
  /** Whether it may make objects and patches. */
  readonly isMutation?: boolean;
  /** Those that were declared before it, in order. */
  readonly variables?: ReadonlyMap<string, Type>;
}

export type Wanted = "bool" | "string" | "string or null" | "Object" | "list(JSONPatch)" | "anything";

/** Throws an ExpressionError in the words of a real server. */
export function compileExpression(source: string, context: ExpressionContext, wanted: Wanted): Program {
  const program = compileOrExplain(source, environmentOf(context));
  const found = formatType(program.type);
  const types = WANTED[wanted];
  if (types !== undefined && !types.includes(found)) {
    const list = types.length === 1 ? types.join() : `one of [${types.join(" ")}]`;
    throw new ExpressionError(`must evaluate to ${list} but got ${found}`);
  }
  return program;
}

/** What is wrong with an expression, whatever it is given. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

const WANTED: Readonly<Record<Wanted, readonly string[] | undefined>> = {
  bool: ["bool"],
  string: ["string"],
  "string or null": ["string", "null_type"],
  Object: ["Object"],
  "list(JSONPatch)": ["list(JSONPatch)"],
  anything: undefined,
};

function compileOrExplain(source: string, environment: Environment): Program {
  try {
    return compile(source, environment);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new ExpressionError(`compilation failed: ${describeAt(source, withReason(error))}`);
  }
}

/** Of what a real server has and this one does not, the name alone would be a riddle. */
function withReason(error: CelError): CelError {
  if (!error.message.startsWith("undeclared reference to 'authorizer")) return error;
  return new CelError(error.code, `${error.message}: this server offers policies no authorizer`, error.at);
}

const LIBRARIES = [STANDARD, ADDRESSES, URLS, QUANTITIES];
const FUNCTIONS = new Functions(...LIBRARIES);
const MUTATION_FUNCTIONS = new Functions(...LIBRARIES, JSON_PATCH_FUNCTIONS);

function environmentOf({ hasParams, isMutation = false, variables }: ExpressionContext): Environment {
  return {
    homogeneousLiterals: true,
    checksLiterals: true,
    functions: isMutation ? MUTATION_FUNCTIONS : FUNCTIONS,
    variables: new Map([
      ["object", DYN],
      ["oldObject", DYN],
      ["request", REQUEST],
      ["namespaceObject", NAMESPACE],
      ...(hasParams ? [["params", DYN] as const] : []),
      ...(variables === undefined
        ? []
        : [["variables", objectOf("kubernetes.variables", Object.fromEntries(variables))] as const]),
    ]),
    ...(isMutation ? { objectType: patchType } : {}),
  };
}

const JSON_PATCH = objectOf("JSONPatch", { op: STRING, path: STRING, from: STRING, value: DYN });

/** `Object`, `Object.spec` and so on, whose fields are whatever is written; and operations of a JSON patch. */
function patchType(name: string): Type | undefined {
  if (name === "JSONPatch") return JSON_PATCH;
  if (name !== "Object" && !name.startsWith("Object.")) return undefined;
  return { kind: "object", name, field: () => DYN };
}

function objectOf(name: string, fields: Readonly<Record<string, Type>>): Type {
  return {
    kind: "object",
    name,
    field: (field) => (Object.hasOwn(fields, field) ? fields[field] : undefined),
  };
}

function texts(...names: readonly string[]): Record<string, Type> {
  return Object.fromEntries(names.map((name) => [name, STRING]));
}

const TEXT_MAP = parseType("map(string, string)");
const TEXT_LIST = listOf(STRING);
const KIND = objectOf("kubernetes.GroupVersionKind", texts("group", "version", "kind"));
const RESOURCE = objectOf("kubernetes.GroupVersionResource", texts("group", "version", "resource"));

const REQUEST = objectOf("kubernetes.AdmissionRequest", {
  kind: KIND,
  resource: RESOURCE,
  requestKind: KIND,
  requestResource: RESOURCE,
  ...texts("subResource", "requestSubResource", "name", "namespace", "operation"),
  userInfo: objectOf("kubernetes.UserInfo", {
    ...texts("username", "uid"),
    groups: TEXT_LIST,
    extra: parseType("map(string, list(string))"),
  }),
  dryRun: parseType("bool"),
  options: DYN,
});

const NAMESPACE = objectOf("kubernetes.Namespace", {
  metadata: objectOf("kubernetes.NamespaceMetadata", {
    ...texts("name", "generateName", "namespace", "UID", "resourceVersion"),
    // Times are texts in JSON; a real server reads them, so both are taken.
    creationTimestamp: DYN,
    deletionTimestamp: DYN,
    deletionGracePeriodSeconds: parseType("int"),
    generation: parseType("int"),
    labels: TEXT_MAP,
    annotations: TEXT_MAP,
    finalizers: TEXT_LIST,
  }),
  spec: objectOf("kubernetes.NamespaceSpec", { finalizers: TEXT_LIST }),
  status: objectOf("kubernetes.NamespaceStatus", { phase: STRING, conditions: listOf(DYN) }),
});
