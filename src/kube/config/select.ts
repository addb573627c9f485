import { Fields } from "./fields.ts";
import type { Kubeconfig } from "./parse.ts";
import { listed, type Problems } from "./problems.ts";

/** The cluster, user and namespace that a context puts together. */
export interface Selection {
  readonly cluster: Fields;
  readonly user: Fields;
  readonly namespace?: string | undefined;
}

/** Undefined if a name leads nowhere: then a problem was added that lists the names which would. */
export function selectContext(
  config: Kubeconfig,
  { context: wanted, files }: { context: string | undefined; files: readonly string[] },
  problems: Problems,
): Selection | undefined {
  const name = wanted ?? config.currentContext;
  const known = listed([...config.contexts.keys()]);
  const file = files.join(", ");
  if (name === undefined) {
    problems.add(
      { file, field: "current-context" },
      `is not set; set it, or choose a context by name: ${known}`,
    );
    return undefined;
  }
  const context = config.contexts.get(name);
  if (context === undefined) {
    const field = wanted === undefined ? "current-context" : "contexts";
    problems.add({ file, field }, `there is no context ${name}; there is: ${known}`);
    return undefined;
  }
  const cluster = follow(context, "cluster", config.clusters);
  // A context without a user is anonymous, for kubectl too; a user that does not exist is a mistake.
  const user = context.isSet("user") ? follow(context, "user", config.users) : emptyFields(file, problems);
  const namespace = context.string("namespace");
  return cluster === undefined || user === undefined ? undefined : { cluster, user, namespace };
}

/** For a server that is given without any kubeconfig. */
export function emptyFields(file: string, problems: Problems): Fields {
  return new Fields({ file }, {}, problems);
}

function follow(context: Fields, name: string, entries: ReadonlyMap<string, Fields>): Fields | undefined {
  const target = context.string(name);
  if (target === undefined) {
    if (!context.isSet(name))
      context.complain(name, `is missing; name one of: ${listed([...entries.keys()])}`);
    return undefined;
  }
  const entry = entries.get(target);
  if (entry === undefined) {
    context.complain(name, `names ${target}, which does not exist; there is: ${listed([...entries.keys()])}`);
  }
  return entry;
}
