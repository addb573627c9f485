import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { align, comparable, type Step } from "../rules/replay.testing.ts";
import { givenEngine } from "./stage.testing.ts";

const { steps } = JSON.parse(
  readFileSync("test/fixtures/apiserver/recordings/13-namespace-gc.json", "utf8"),
) as { steps: readonly Step[] };

/** Their answers were made by the binder of volumes, which is no part of this server. All others are compared. */
const BOUND_ELSEWHERE = [21, 23, 24, 26];

test("a real server with its controllers answered as we do: accounts, owners, claims, namespaces", async () => {
  const engine = await givenEngine({ rootCa: "<PEM>" });
  const uids = new Map<string, string>();
  const compared: number[] = [];

  for (const [number, { request, response, setup = false }] of steps.entries()) {
    const { "Content-Type": type = "application/json" } = request.headers ?? {};
    const body = request.body === undefined ? undefined : fill(request.body, uids);
    const answer = await engine.send(request.method, request.path, body, { type });
    await engine.settle();

    const label = `step ${number}: ${request.method} ${request.path}`;
    expect(answer.status, label).toBe(response.status);
    learn(response.body, answer.body, uids);
    if (setup || BOUND_ELSEWHERE.includes(number)) continue;
    const expected = fill(shown(response.body), uids);
    expect(align(expected, shown(answer.body), { isPart: false }), label).toEqual(expected);
    compared.push(number);
  }

  expect(compared).toHaveLength(13);
  expect(await engine.statusOf("/api/v1/namespaces/g13")).toBe(404);
  expect(await engine.statusOf("/api/v1/persistentvolumes/g13-pv")).toBe(404);
});

/** Without versions, and without the words of a description, which are our own. */
function shown(body: unknown): unknown {
  const { items, ...object } = body as { items?: readonly Record<string, unknown>[] };
  const one = withoutWords(comparable(object) as Record<string, unknown>);
  return items === undefined
    ? one
    : { ...one, items: items.map((item) => withoutWords(comparable(item) as typeof item)) };
}

function withoutWords(object: Record<string, unknown>): Record<string, unknown> {
  const { annotations, ...metadata } = (object["metadata"] ?? {}) as { annotations?: object };
  const keys = annotations === undefined ? {} : { annotations: Object.keys(annotations) };
  return { ...object, metadata: { ...metadata, ...keys } };
}

/** Our uid for each of theirs. */
function learn(theirs: unknown, ours: unknown, uids: Map<string, string>): void {
  const [placeholder, uid] = [theirs, ours].map(
    (body) => (body as { metadata?: { uid?: string } }).metadata?.uid,
  );
  if (placeholder !== undefined && uid !== undefined) uids.set(placeholder, uid);
}

function fill(value: unknown, uids: ReadonlyMap<string, string>): unknown {
  return JSON.parse(
    JSON.stringify(value).replaceAll(/<UID-\d+>/g, (placeholder) => uids.get(placeholder) ?? placeholder),
  );
}
