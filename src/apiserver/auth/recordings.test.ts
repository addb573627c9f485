import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { givenCluster, type Cluster } from "./scenario.testing.ts";

/**
 * What a real kube-apiserver v1.26.5 answered, step by step. Placeholders such as `<UID-1>` stand for one
 * value everywhere in a file; see the README of the recordings.
 */
interface Step {
  readonly setup?: boolean;
  readonly note?: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly as?: string;
    readonly body?: unknown;
  };
  readonly response: { readonly status: number; readonly body: unknown };
}

function readSteps(file: string): Step[] {
  const url = new URL(`../../../test/fixtures/apiserver/${file}`, import.meta.url);
  return (JSON.parse(readFileSync(url, "utf8")) as { steps: Step[] }).steps;
}

describe("recorded: 401, 403, anonymous, service account, impersonation, roles", () => {
  test("every answer is the recorded one", async () => {
    const cluster = await givenCluster();
    const names = new Map<string, string>();
    let accountToken = "";

    for (const step of readSteps("12-auth.json")) {
      if (step.note?.includes("10 s token cache") === true) await cluster.scheduler.runFor(10_000);
      const answer = await play(cluster, step, names, accountToken);
      if (step.request.path.endsWith("/token")) accountToken = String(answer.body.status["token"]);
      // Version, discovery and lists of others are judged elsewhere; here it counts that they were let in.
      if (step.setup !== true && answer.status >= 400) {
        expect(answer.body, label(step)).toEqual(step.response.body);
      }
    }
  });
});

describe("recorded: tokens and reviews", () => {
  test("every answer is the recorded one, but for rights that newer releases add", async () => {
    const cluster = await givenCluster();
    const names = new Map<string, string>();

    for (const step of readSteps("11-tokens-and-reviews.json")) {
      const { body } = await play(cluster, step, names, "");
      if (step.request.path.endsWith("/selfsubjectrulesreviews")) checkRules(body, step.response.body);
      else if (step.setup !== true) {
        expect(withoutManagedFields(body), label(step)).toEqual(
          expected(withoutManagedFields(step.response.body), body, names),
        );
      } else expected(step.response.body, body, names);
    }
  });

  /** Order is not promised, and 1.28 added `selfsubjectreviews` for everybody. */
  function checkRules(actual: { status: object }, recorded: unknown): void {
    const { status } = recorded as { status: { resourceRules: unknown[]; nonResourceRules: unknown[] } };
    expect(actual.status).toMatchObject({
      resourceRules: expect.arrayContaining(status.resourceRules),
      nonResourceRules: expect.arrayContaining(status.nonResourceRules),
      incomplete: false,
    });
  }
});

async function play(cluster: Cluster, step: Step, names: ReadonlyMap<string, string>, accountToken: string) {
  const { method, path, headers, as, body } = step.request;
  const lowered = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const text = JSON.stringify(body ?? null).replace(/<[A-Z]+-\d+>/g, (name) => names.get(name) ?? name);
  const sender =
    as === undefined
      ? {}
      : as === "anonymous"
        ? { user: null }
        : { as: as.startsWith("serviceaccount") ? accountToken : as };
  const answer = await cluster.send(method, path, body === undefined ? undefined : JSON.parse(text), {
    ...sender,
    headers: lowered,
  });
  expect(answer.status, `${label(step)}: ${answer.text}`).toBe(step.response.status);
  return answer;
}

/** The recorded value with placeholders replaced: by what they stand for, or, when new, by what came. */
function expected(recorded: unknown, actual: unknown, names: Map<string, string>): unknown {
  if (Array.isArray(recorded)) {
    const items = Array.isArray(actual) ? (actual as unknown[]) : [];
    return recorded.map((item, index) => expected(item, items[index], names));
  }
  if (typeof recorded === "object" && recorded !== null) {
    const fields = (actual ?? {}) as Readonly<Record<string, unknown>>;
    return Object.fromEntries(
      Object.entries(recorded).map(([key, value]) => [key, expected(value, fields[key], names)]),
    );
  }
  if (typeof recorded !== "string" || !/^<[A-Z]+-\d+>$/.test(recorded)) return recorded;
  // Times of a recording repeat by chance; those of a simulation do not move at all.
  if (recorded.startsWith("<TIME")) return expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  if (typeof actual === "string" && !names.has(recorded)) names.set(recorded, actual);
  return names.get(recorded) ?? recorded;
}

function withoutManagedFields(body: unknown): unknown {
  const { metadata, ...rest } = body as { metadata: Readonly<Record<string, unknown>> };
  const { managedFields: _managedFields, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

function label({ note, request }: Step): string {
  return `${request.method} ${request.path}${note === undefined ? "" : ` (${note})`}`;
}
