import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCluster } from "./cluster.ts";
import { CROWD } from "./crowd.testing.ts";
import { explain } from "./explain.ts";
import { KIND_FAULTS } from "./kind-faults.testing.ts";
import { cluster, NOW_MS, pod, runningPod } from "./objects.testing.ts";
import { NO_OBJECTS, OBJECT_KINDS, OPTIONAL_KINDS, type ClusterObjects } from "./objects.ts";
import { stuckIn } from "./stuck.ts";
import { kindsFor, SUBJECT_KINDS, SUBJECTS, subjectKindNamed } from "./subjects.ts";

const stuck = (objects: ClusterObjects, context = {}) => stuckIn(createCluster(objects, NOW_MS, context));

describe("everything that is stuck", () => {
  test("is told by cause, most affected first, each object once", () => {
    const { causes, summary } = stuck(CROWD.objects);

    expect(causes.map(({ reason, count }) => `${count} ${reason}`)).toEqual([
      "3 class-missing",
      "1 attachment-orphaned",
      "1 held-by-not-ready-node",
      "1 node-not-ready",
      "1 provision-failed",
      "1 snapshot-source-missing",
      "1 workload-quota",
    ]);
    const names = causes.flatMap(({ objects }) => objects.map(({ kind, name }) => `${kind}/${name}`));
    expect(new Set(names).size).toBe(names.length);
    expect(summary).toMatch(/^9 objects are stuck, for 7 causes; 5 of 9 pods wait\./);
  });

  test("each cause has the one command to look further, as whoever asks has to give it", () => {
    const [first] = stuck(CROWD.objects, { kubeconfig: "a b", context: "prod" }).causes;

    expect(first?.command).toBe("mooring why pod/log-1 --kubeconfig 'a b' --context prod --namespace shop");
  });

  test("nothing stuck says so, and what was looked at", () => {
    const { causes, summary } = stuck(cluster({ pods: [runningPod()] }));

    expect(causes).toEqual([]);
    expect(summary).toBe(
      "Nothing is stuck; looked at: 1 pod, 1 claim, 1 volume, 1 attachment, 0 StatefulSets, 0 Deployments, 0 snapshots.",
    );
  });

  test("what could not be read is said, and what is not served is not said to be empty", () => {
    const unread = [
      { kind: "snapshots", right: "list volumesnapshots.snapshot.storage.k8s.io", why: "not permitted" },
    ] as const;
    const { missingRights, checked } = stuck({ ...NO_OBJECTS, unread, notServed: ["deployments"] });

    expect(missingRights).toEqual(["list volumesnapshots.snapshot.storage.k8s.io: not permitted"]);
    expect(checked).not.toHaveProperty("deployments");
  });

  test("a hundred pods that wait for one class are one cause; messages that differ in numbers only are one", () => {
    const many = Array.from({ length: 100 }, (_, at) =>
      pod(`web-${at}`, {
        claim: "gone",
        spec: { nodeName: undefined },
        status: {
          conditions: [
            {
              type: "PodScheduled",
              status: "False",
              message: `0/${at} nodes are available: ${at} Insufficient cpu.`,
            },
          ],
        },
      }),
    );

    expect(stuck(cluster({ pods: many, attachments: [] })).causes.map(({ count }) => count)).toEqual([100]);
    const scheduled = many.map((item) => ({ ...item, spec: { ...item.spec, volumes: [] } }));
    expect(stuck(cluster({ pods: scheduled as typeof many, attachments: [] })).causes).toMatchObject([
      { count: 100, reason: "unschedulable" },
    ]);
  });
});

test("every kind is found by the names kubectl has for it, with its group or without, in any case", () => {
  for (const kind of SUBJECT_KINDS) {
    for (const name of SUBJECTS[kind].names) {
      expect([name, `${name}.some.group`, name.toUpperCase()].map(subjectKindNamed)).toEqual([
        kind,
        kind,
        kind,
      ]);
    }
  }
  expect(subjectKindNamed("constructor")).toBeUndefined();
});

test("a question reads only the optional kinds it needs", () => {
  for (const kind of SUBJECT_KINDS) expect(kindsFor(kind)).toContain(SUBJECTS[kind].read);
  expect(kindsFor("pod").filter((kind) => OPTIONAL_KINDS.some((item) => item === kind))).toEqual(
    SUBJECTS.pod.needs,
  );
});

test("without the rights to read anything else no answer throws or claims that something is missing", () => {
  for (const { objects, subject } of KIND_FAULTS) {
    const { read } = SUBJECTS[subject.kind];
    const unread = OBJECT_KINDS.filter((kind) => kind !== read).map((kind) => ({
      kind,
      right: `list ${kind}`,
      why: "not permitted",
    }));
    const alone = createCluster({ ...NO_OBJECTS, [read]: objects[read], unread }, NOW_MS);

    const answer = explain(alone, subject);

    expect(answer?.summary ?? "").not.toMatch(
      /does not exist|is missing|nothing in the cluster knows|on no node,/,
    );
  }
});

test("no field that is missing or of another type makes an answer about any kind, or all that is stuck, throw", () => {
  const twisted = fc.tuple(fc.constantFrom(...KIND_FAULTS, CROWD), fc.infiniteStream(fc.nat({ max: 99 })));

  fc.assert(
    fc.property(twisted, ([{ objects, subject }, numbers]) => {
      const { unread, waits, notAsked, notServed } = objects;
      const damaged = { ...(damage(objects, numbers) as ClusterObjects), unread, waits, notAsked, notServed };

      explain(createCluster(damaged, NOW_MS), subject);
      stuck(damaged);
    }),
    { numRuns: 300 },
  );
}, 60_000);

/** One field in sixteen becomes something else, or goes. */
function damage(value: unknown, numbers: Iterator<number>, depth = 0): unknown {
  const roll = depth < 2 ? 99 : ((numbers.next().value as number | undefined) ?? 99);
  if (roll < 6) return [null, 7, "text", [], {}, undefined][roll];
  if (Array.isArray(value)) return value.map((item) => damage(item, numbers, depth + 1));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, damage(item, numbers, depth + 1)]),
  );
}
