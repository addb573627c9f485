import type { Outcome } from "../../kube/workqueue/controller.ts";
import { keyFor, type VerbDeps } from "../request.ts";
import { namespaces } from "../kinds.ts";
import { fieldAt, parseStored, type ApiObject } from "../objects.ts";
import { DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { changeSeen, createMissing } from "./writes.ts";

const ACCOUNT = "default";
const ROOT_CA = "kube-root-ca.crt";
/** The key of the annotation is upstream's; the words are ours. */
const DESCRIPTION = {
  "kubernetes.io/description":
    "The authority that signed this API server's certificate, for clients inside the cluster to trust.",
};

export interface ServiceAccounts extends EngineController {
  /** Replaces what every namespace is told to trust. */
  useRootCa(bundle: string): void;
}

/**
 * What a namespace is born with: the account its pods run as, and the authority they should trust. Keys are
 * names of namespaces. Whatever is taken away is made again; in a namespace that is going, nothing is.
 */
export function createServiceAccounts(
  verbs: VerbDeps,
  { mark }: Marks,
  {
    rootCa: initial,
    makesAccounts = true,
    publishesRootCa = true,
  }: {
    readonly rootCa?: string | undefined;
    readonly makesAccounts?: boolean;
    readonly publishesRootCa?: boolean;
  },
): ServiceAccounts {
  const { store } = verbs;
  let rootCa = initial;

  async function ensureAccount(namespace: string): Promise<void> {
    if (store.get({ resource: "serviceaccounts", namespace, name: ACCOUNT }) !== undefined) return;
    await createMissing(verbs, "serviceaccounts", namespace, { metadata: { name: ACCOUNT } });
  }

  async function ensureRootCa(namespace: string, certificate: string): Promise<void> {
    const data = { "ca.crt": certificate };
    const stored = store.get({ resource: "configmaps", namespace, name: ROOT_CA });
    if (stored === undefined) {
      const metadata = { name: ROOT_CA, annotations: DESCRIPTION };
      await createMissing(verbs, "configmaps", namespace, { metadata, data });
    } else if (fieldAt(parseStored(stored), "data", "ca.crt") !== certificate) {
      await changeSeen(verbs, stored, (configMap): ApiObject => ({ ...configMap, data }));
    }
  }

  return {
    useRootCa(bundle) {
      rootCa = bundle;
      for (const { key } of store.scan({ resource: "namespaces" })) mark(key.name);
    },

    clear: () => undefined,

    observe({ type, object: { key } }) {
      const { resource, namespace, name } = key;
      if (resource === "namespaces" && type !== "deleted") mark(name);
      if (resource === "serviceaccounts" && name === ACCOUNT && type === "deleted") mark(namespace);
      if (resource === "configmaps" && name === ROOT_CA && type !== "found") mark(namespace);
    },

    async reconcile(name): Promise<Outcome> {
      const stored = store.get(keyFor(namespaces, undefined, name));
      if (stored === undefined || parseStored(stored).metadata.deletionTimestamp !== undefined) return DONE;
      if (makesAccounts) await ensureAccount(name);
      if (rootCa !== undefined && publishesRootCa) await ensureRootCa(name, rootCa);
      return DONE;
    },
  };
}
