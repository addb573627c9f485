import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import type { ActOf, WorkloadAct } from "../act.ts";
import { NAMESPACE } from "../apps.ts";
import type { ActContext, Performers } from "./context.ts";
import { provideVolume } from "./objects.ts";

/** Apps come and go, and their pods with them. */
export const WORKLOAD: Performers<WorkloadAct["kind"]> = {
  "add-app": async (act, context) => {
    const { app: name, mode, storageClass, block, node, volumeAfterMs } = act;
    context.apps.add({ name, mode, storageClass, block, node });
    if (volumeAfterMs !== undefined) provideVolume(name, volumeAfterMs, context);
  },
  "finish-pod": finish,
  "remove-app": async ({ app }, { apps }) => apps.remove(app),
  "delete-pod": deletePod,
  grow,
  "pod-without-claim": async ({ node, forMs }, context) => {
    const name = context.newName(STRAY);
    await context.client.create(pods, strayPod(name, node));
    context.later(forMs, () => context.client.delete(pods, { namespace: NAMESPACE, name }));
  },
};

/** Of pods that no app has. */
const STRAY = "stray";

/** Whoever put a pod somewhere has deleted it. */
export async function healWorkload({ client, world }: ActContext): Promise<void> {
  for (const { metadata } of world.objects.all("pods")) {
    const { name = "", deletionTimestamp } = metadata;
    if (name.startsWith(`${STRAY}-`) && deletionTimestamp === undefined)
      await client.delete(pods, { namespace: NAMESPACE, name }).catch(() => undefined);
  }
}

function strayPod(name: string, node: string): Pod {
  return {
    metadata: { namespace: NAMESPACE, name },
    spec: {
      ...{ nodeName: node, automountServiceAccountToken: false, terminationGracePeriodSeconds: 5 },
      containers: [{ name: "app", image: "app", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: `${name}-nobody-made` } }],
    },
  };
}

async function deletePod(
  { app: name, force, node }: ActOf<"delete-pod">,
  { client, apps }: ActContext,
): Promise<void> {
  const app = apps.apps.get(name);
  if (app !== undefined) app.node = node;
  const options = force ? { gracePeriodSeconds: 0 } : {};
  await client.delete(pods, { namespace: NAMESPACE, name: `${name}-0` }, options);
}

/** As a kubelet says it: only once no container is left. */
async function finish({ app: name }: ActOf<"finish-pod">, context: ActContext): Promise<void> {
  const pod = context.apps.podOf({ name });
  const node = context.world.nodes.get(pod?.spec?.nodeName ?? "");
  const { uid = "" } = pod?.metadata ?? {};
  if (pod === undefined || node?.containers.running.has(uid) !== true) return;
  node.containers.onEnd(uid, () => {
    const value = { metadata: { uid }, status: { phase: "Succeeded" } };
    const ref = { namespace: NAMESPACE, name: `${name}-0` };
    const options = { subresource: "status" } as const;
    // It is said again until somebody hears it, or the pod is another.
    const say = () =>
      void context.client.patch(pods, ref, { type: "merge", value }, options).catch(() => {
        if (context.apps.podOf({ name })?.metadata.uid === uid) context.later(1_000, async () => say());
      });
    say();
  });
  node.containers.end(uid);
}

async function grow({ app: name }: ActOf<"grow">, { client, apps }: ActContext): Promise<void> {
  const claim = apps.claimOf({ name });
  if (claim === undefined) return;
  const now = Number.parseInt(claim.spec?.resources?.requests?.["storage"] ?? "1", 10);
  const value = { spec: { resources: { requests: { storage: `${now + 1}Gi` } } } };
  await client.patch(persistentVolumeClaims, { namespace: NAMESPACE, name }, { type: "merge", value });
}
