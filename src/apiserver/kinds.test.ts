import { describe, expect, test } from "vitest";
import { apiVersionOf } from "../kube/object.ts";
import type { JsonObject } from "../kube/patch/json.ts";
import type { Kind } from "./kinds.ts";
import { POLICY_KINDS } from "./kinds-policy.ts";
import { WORKLOAD_KINDS } from "./kinds-workloads.ts";
import { SAMPLES } from "./samples.testing.ts";
import { givenServer } from "./scenario.testing.ts";
import { encodeProtobuf } from "./schema/protobuf.testing.ts";

const KINDS = [...WORKLOAD_KINDS, ...POLICY_KINDS];
const MERGE = { type: "application/merge-patch+json" };
const APPLY = { type: "application/apply-patch+yaml" };

function pathOf({ group, version, plural, namespaced }: Kind): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}${namespaced ? "/namespaces/t" : ""}/${plural}`;
}

function sampleOf(kind: Kind, name = "x"): JsonObject {
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata: { name }, ...SAMPLES[kind.kind] };
}

const withoutServerFields = ({ metadata: _, ...rest }: object & { metadata?: unknown }) => rest;

test("every kind has a sample, and every sample a kind", () => {
  expect(Object.keys(SAMPLES).sort()).toEqual(KINDS.map(({ kind }) => kind).sort());
});

describe("a kind is served whole:", () => {
  for (const kind of KINDS) {
    const path = pathOf(kind);

    test(`${kind.plural} are created, read, listed, patched, applied, watched and deleted`, async () => {
      const { ok, send, watch } = await givenServer();
      const events = await watch(`${path}?watch=1&resourceVersion=0`);

      const created = await ok("POST", path, sampleOf(kind));
      const patched = await ok("PATCH", `${path}/x`, { metadata: { labels: { a: "b" } } }, MERGE);
      const applied = await ok(
        "PATCH",
        `${path}/x?fieldManager=me&force=true`,
        { ...sampleOf(kind), metadata: { name: "x", annotations: { c: "d" } }, ...without(sampleOf(kind)) },
        APPLY,
      );
      const { items } = (await ok("GET", path)) as unknown as { items: object[] };
      const deleted = await send("DELETE", `${path}/x`);

      expect(created.metadata.generation).toBe(kind.generation === "from-1" ? 1 : undefined);
      expect(withoutServerFields(patched)).toEqual(withoutServerFields(created));
      expect(applied.metadata).toMatchObject({ labels: { a: "b" }, annotations: { c: "d" } });
      // What only metadata tells is no new generation.
      expect(applied.metadata.generation).toBe(created.metadata.generation);
      expect(items).toHaveLength(1);
      expect(deleted.status).toBe(200);
      expect((await send("GET", `${path}/x`)).status).toBe(404);
      expect((await events.events()).map(({ type }) => type)).toEqual([
        "ADDED",
        "MODIFIED",
        "MODIFIED",
        "DELETED",
      ]);
    });

    test(`${kind.plural} mean the same in protobuf and in JSON`, async () => {
      const { ok, handler } = await givenServer();
      const text = await ok("POST", path, sampleOf(kind, "x"));
      const response = await handler({
        method: "POST",
        path,
        headers: { "content-type": "application/vnd.kubernetes.protobuf" },
        body: encodeProtobuf(kind, sampleOf(kind, "y")),
        signal: new AbortController().signal,
      });

      expect(response.status, response.body as string).toBe(201);
      const binary = JSON.parse(response.body as string) as object;
      expect(neutral(binary)).toEqual(neutral(text));
    });

    test(`${kind.plural} have a table`, async () => {
      const { ok, send } = await givenServer();
      await ok("POST", path, sampleOf(kind));

      const { body } = await send("GET", path, undefined, {
        headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
      });

      const { columnDefinitions, rows } = body as unknown as {
        columnDefinitions: object[];
        rows: { cells: unknown[] }[];
      };
      expect(rows[0]?.cells).toHaveLength(columnDefinitions.length);
      expect(rows[0]?.cells[0]).toBe("x");
    });

    if (kind.status !== "none") {
      test(`the status of ${kind.plural} is written through /status alone`, async () => {
        const { ok } = await givenServer();
        const created = await ok("POST", path, sampleOf(kind));
        const conditions = [
          {
            type: "T",
            status: "True",
            lastTransitionTime: "2026-01-01T00:00:00Z",
            reason: "R",
            message: "m",
          },
        ];

        await ok("PATCH", `${path}/x`, { status: { conditions } }, MERGE);
        const before = await ok("GET", `${path}/x`);
        const after = await ok("PATCH", `${path}/x/status`, { status: { conditions }, spec: null }, MERGE);

        expect(before["status"]).toEqual(created["status"]);
        if (HAS_CONDITIONS.has(kind.kind)) {
          expect(after["status"]).toMatchObject({ conditions: [{ type: "T", status: "True" }] });
        }
        expect(after["spec"]).toEqual(created["spec"]);
      });
    }
  }
});

const HAS_CONDITIONS = new Set([
  "Deployment",
  "ReplicaSet",
  "StatefulSet",
  "DaemonSet",
  "Job",
  "Service",
  "PodDisruptionBudget",
]);

/** Addresses, uids and names differ between two objects; the rest may not. */
function neutral(object: object): unknown {
  const text = JSON.stringify(withoutServerFields(object));
  return JSON.parse(
    text
      .replace(/10\.\d+\.\d+\.\d+/g, "IP")
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UID")
      .replace(/"(job-name|batch.kubernetes.io\/job-name)":"[xy]"/g, '"$1":"NAME"'),
  ) as unknown;
}

function without({ metadata: _, ...rest }: JsonObject): JsonObject {
  return rest;
}
