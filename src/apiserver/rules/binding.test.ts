import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/recordings/11-subresources.json" with { type: "json" };
import { planDeletion } from "../deletion.ts";
import { StatusError } from "../errors.ts";
import { pods } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { bindPod, checkBinding } from "./binding.ts";
import { checkEviction, evictPod } from "./eviction.ts";
import { given, NOW, NOW_TEXT, stored } from "./given.testing.ts";
import { align, comparable, Replay, type Answer, type Step } from "./replay.testing.ts";

const NO_OPTIONS = {
  dryRun: false,
  gracePeriodSeconds: undefined,
  propagationPolicy: undefined,
  uid: undefined,
  resourceVersion: undefined,
};

function binding(metadata: object = {}, target: object = { kind: "Node", name: "n" }) {
  return { metadata: { name: "x", ...metadata }, target };
}

function refusal(act: () => unknown) {
  try {
    act();
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  return undefined;
}

describe("recorded steps of binding and eviction", () => {
  const replay = new Replay();
  const steps: readonly Step[] = recorded.steps.slice(0, 19);
  for (const [index, step] of steps.entries()) {
    const answer = answerTo(replay, step);
    if (step.setup === true) continue;
    test(`${index}: ${step.request.method} ${step.note ?? step.request.path}`, () => {
      // Bad input is the client's fault here: 422 where the real server has no status and says 500.
      if (index === 9)
        expect(answer).toMatchObject({
          status: 422,
          body: { details: { causes: [{ field: "target.name" }] } },
        });
      else expect(essence(answer, step)).toEqual(essence(step.response, step));
    });
  }
});

/** What the verbs will do around the pure functions. */
function answerTo(replay: Replay, step: Step): Answer {
  const { method, path, body } = step.request;
  const [, podPath = path, subresource = ""] = /^(.*\/pods\/[^/]+)\/(binding|eviction)$/.exec(path) ?? [];
  const legacy = /^(.*)\/bindings$/.exec(path)?.[1];
  if (method !== "DELETE" && subresource === "" && legacy === undefined)
    return replay.answer(step) ?? { status: 400, body: {} };
  const target = legacy === undefined ? podPath : `${legacy}/pods/${(body as ApiObject).metadata.name ?? ""}`;
  const pod = replay.find(target);
  if (pod === undefined) return { status: 404, body: { reason: "NotFound" } };
  const refused = refusal(() => {
    if (method === "DELETE" || subresource === "eviction") {
      const name = target.split("/").at(-1) ?? "";
      if (method !== "DELETE") checkEviction(body as ApiObject, name);
      const plan =
        method === "DELETE" ? planDeletion(pods, pod, NO_OPTIONS, NOW) : evictPod(pod, NO_OPTIONS, NOW);
      if (plan.kind === "mark") replay.put(target, plan.next);
    } else {
      checkBinding(body as ApiObject, target.split("/").at(-1) ?? "");
      replay.put(target, bindPod(pod, body as ApiObject, NOW));
    }
  });
  return refused === undefined ? { status: 201, body: {} } : { status: refused.code, body: refused };
}

function essence({ status, body }: { status: number; body?: unknown }, { request, response }: Step): unknown {
  if (request.method === "GET")
    return { status, body: align(comparable(response.body), comparable(body), { isPart: true }) };
  const { reason, message } = body as { reason?: string; message?: string };
  return status === 409 || status === 400 ? { status, reason, message } : { status };
}

describe("binding", () => {
  const pod = stored(
    "Pod",
    { spec: { containers: [{ name: "c", image: "i" }] } },
    { uid: "u", resourceVersion: "7", annotations: { a: "1" } },
  );

  test("sets the node, merges annotations, and says when", () => {
    const bound = bindPod(pod, binding({ annotations: { b: "2" } }), NOW);

    expect(bound.metadata.annotations).toEqual({ a: "1", b: "2" });
    expect(bound["spec"]).toMatchObject({ nodeName: "n" });
    expect(bound["status"]).toMatchObject({
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: NOW_TEXT }],
    });
  });

  test("a scheduler's refusal before is overwritten, other conditions stay", () => {
    const ready = { type: "Ready", status: "False" };
    const refused = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    const waiting = { ...pod, status: { conditions: [refused, ready], nominatedNodeName: "m" } };

    expect(bindPod(waiting, binding(), NOW)["status"]).toEqual({
      conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: NOW_TEXT }, ready],
    });
  });

  for (const [what, metadata, code] of [
    ["the uid of this pod", { uid: "u" }, undefined],
    ["the uid of one that had this name before", { uid: "v" }, 409],
    ["the version that is stored", { resourceVersion: "7" }, undefined],
    ["a version that is not", { resourceVersion: "6" }, 409],
  ] as const) {
    test(`with ${what}: ${code ?? "good"}`, () => {
      expect(refusal(() => bindPod(pod, binding(metadata), NOW))?.code).toBe(code);
    });
  }

  test("a pod with gates is not ready for a node", () => {
    const gated = { ...pod, spec: { schedulingGates: [{ name: "g" }] } };

    expect(refusal(() => bindPod(gated, binding(), NOW))?.message).toContain(
      "has non-empty .spec.schedulingGates",
    );
  });

  test("the target is a node, said or meant", () => {
    expect(refusal(() => checkBinding(binding({}, { name: "n" }), "x"))).toBeUndefined();
    expect(refusal(() => checkBinding(binding({}, { kind: "Pod", name: "n" }), "x"))?.code).toBe(422);
  });
});

describe("eviction", () => {
  const running = {
    ...stored("Pod", { spec: { containers: [{ name: "c", image: "i" }], nodeName: "n" } }),
    status: { phase: "Running" },
  };

  test("is a graceful deletion that says why", () => {
    const plan = evictPod(running, NO_OPTIONS, NOW);

    expect(plan).toMatchObject({
      kind: "mark",
      next: {
        metadata: { deletionGracePeriodSeconds: 30 },
        status: { conditions: [{ type: "DisruptionTarget", reason: "EvictionByEvictionAPI" }] },
      },
    });
  });

  test("of a pod that runs nowhere removes it at once", () => {
    const pending = stored("Pod", { spec: { containers: [{ name: "c", image: "i" }] } });

    expect(evictPod(pending, NO_OPTIONS, NOW).kind).toBe("remove");
  });

  test("a second time changes nothing", () => {
    const first = evictPod(running, NO_OPTIONS, NOW);
    const later = new Date(NOW.getTime() + 5_000);

    expect(first.kind === "mark" && evictPod(first.next, NO_OPTIONS, later)).toEqual({ kind: "nothing" });
  });

  test("of a pod that is leaving already still notes the reason", () => {
    const leaving = {
      ...running,
      metadata: { ...running.metadata, deletionTimestamp: NOW_TEXT, deletionGracePeriodSeconds: 30 },
    };

    expect(evictPod(leaving, NO_OPTIONS, NOW)).toMatchObject({
      kind: "mark",
      next: { status: { conditions: [{ type: "DisruptionTarget" }] } },
    });
  });

  test("must name the pod it is sent to", () => {
    expect(refusal(() => checkEviction(given("Pod"), "y"))?.code).toBe(400);
    expect(refusal(() => checkEviction(given("Pod"), "x"))).toBeUndefined();
  });
});
