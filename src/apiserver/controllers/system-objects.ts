import type { Outcome } from "../../kube/workqueue/controller.ts";
import { jsonEqual } from "../../kube/patch/json.ts";
import { fieldAt, parseStored, shorten, toTimestamp, type ApiObject } from "../objects.ts";
import type { VerbDeps } from "../request.ts";
import { KUBERNETES_ADDRESS, SERVICE_RANGE } from "../rules/admission-services.ts";
import { SYSTEM_PRIORITY_CLASSES } from "../rules/scheduling.ts";
import { kindOf, toText } from "./served.ts";
import { DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { changeSeen, createMissing } from "./writes.ts";

/**
 * The objects that every API server keeps in its own store, whoever runs the controllers: the Service by which pods
 * reach it, the authority that extension servers trust, the range that addresses are from, the two classes of
 * priority of the system. What is deleted comes back, and what is changed is changed back.
 */
export interface SystemObjects extends EngineController {
  /** `host:port`, as clients reach this server. */
  useAddress(address: string): void;
  /** The authority that signs the certificates of clients, in PEM. */
  useClientCa(bundle: string): void;
}

interface Wanted {
  readonly resource: string;
  readonly namespace: string;
  readonly object: ApiObject;
  /** Where more than one content is right. */
  readonly isGood?: (current: ApiObject) => boolean;
  /** The condition that says it can be used. */
  readonly ready?: { readonly message: string };
}

export function createSystemObjects(
  verbs: VerbDeps,
  { mark }: Marks,
  { clientCa: initial }: { readonly clientCa?: string | undefined } = {},
): SystemObjects {
  const { store, clock } = verbs;
  let clientCa = initial;
  let address: string | undefined;
  const startDate = toTimestamp(clock.wall()).slice(0, DATE_CHARS);
  let wanted = wantedObjects({ address, clientCa, startDate });

  function rebuild(): void {
    wanted = wantedObjects({ address, clientCa, startDate });
    for (const key of wanted.keys()) mark(key);
  }

  return {
    useAddress(next) {
      address = next;
      rebuild();
    },
    useClientCa(bundle) {
      clientCa = bundle;
      rebuild();
    },

    clear() {
      for (const key of wanted.keys()) mark(key);
    },

    observe({ object: { key } }) {
      const text = toText(key);
      if (wanted.has(text)) mark(text);
    },

    async reconcile(key): Promise<Outcome> {
      const one = wanted.get(key);
      if (one === undefined) return DONE;
      const { resource, namespace, object, isGood = (current) => isAsWanted(current, object) } = one;
      const stored = store.get({ resource, namespace, name: object.metadata.name ?? "" });
      if (stored === undefined) {
        await createMissing(verbs, resource, namespace, object);
        return DONE;
      }
      const current = shorten(kindOf(resource), parseStored(stored));
      if (!isGood(current)) await changeSeen(verbs, stored, (found) => merge(found, object));
      else if (one.ready !== undefined && !saysWhetherReady(current)) {
        const { message } = one.ready;
        const now = toTimestamp(clock.wall());
        await changeSeen(verbs, stored, (found) => withReady(found, message, now), { subresource: "status" });
      }
      return DONE;
    },
  };
}

function wantedObjects(facts: Facts): ReadonlyMap<string, Wanted> {
  const all = [
    ...SYSTEM_PRIORITY_CLASSES.map((object) =>
      wantedOf("priorityclasses.scheduling.k8s.io", "", object as ApiObject),
    ),
    {
      ...wantedOf("servicecidrs.networking.k8s.io", "", {
        metadata: { name: "kubernetes" },
        spec: { cidrs: [SERVICE_RANGE] },
      }),
      ready: { message: "Kubernetes default Service CIDR is ready" },
    },
    tokenTracking(facts),
    ...authentication(facts),
    ...kubernetesService(facts),
  ];
  return new Map(all.map((one) => [toText({ ...one, name: one.object.metadata.name ?? "" }), one]));
}

interface Facts {
  readonly address: string | undefined;
  readonly clientCa: string | undefined;
  /** `2026-03-04`, of this start. */
  readonly startDate: string;
}

function wantedOf(resource: string, namespace: string, object: ApiObject): Wanted {
  return { resource, namespace, object };
}

const DATE_CHARS = "2026-03-04".length;

/**
 * Since when the use of long-lived tokens is recorded: kube-controller-manager deletes unused ones only when it finds
 * this. A date that is there is kept, for it says when recording began and not when this server started.
 */
function tokenTracking({ startDate }: Facts): Wanted {
  const object = {
    metadata: { name: "kube-apiserver-legacy-service-account-token-tracking" },
    data: { since: startDate },
  };
  const isGood = (current: ApiObject) => {
    const since = fieldAt(current, "data", "since");
    return typeof since === "string" && /^\d{4}-\d{2}-\d{2}$/.test(since) && !Number.isNaN(Date.parse(since));
  };
  return { ...wantedOf("configmaps", "kube-system", object), isGood };
}

type Conditions = readonly { readonly type?: string }[];

function conditionsOf(object: ApiObject): Conditions {
  const conditions = fieldAt(object, "status", "conditions");
  return Array.isArray(conditions) ? (conditions as Conditions) : [];
}

/** One that is not ready was made so by a controller that knows why, and would make it so again. */
function saysWhetherReady(object: ApiObject): boolean {
  return conditionsOf(object).some(({ type }) => type === "Ready");
}

function withReady(object: ApiObject, message: string, lastTransitionTime: string): ApiObject {
  const ready = { type: "Ready", status: "True", lastTransitionTime, reason: "", message };
  return { ...object, status: { ...(object.status ?? {}), conditions: [...conditionsOf(object), ready] } };
}

/** No request-header authority is named, since this server trusts no proxy in front of it. */
function authentication({ clientCa }: Facts): Wanted[] {
  if (clientCa === undefined) return [];
  const metadata = { name: "extension-apiserver-authentication" };
  return [wantedOf("configmaps", "kube-system", { metadata, data: { "client-ca-file": clientCa } })];
}

/** Nothing before the socket listens, and no endpoints for a host that is no address. */
function kubernetesService({ address }: Facts): Wanted[] {
  const parts = address === undefined ? null : /^\[?([^\]]+)\]?:([0-9]+)$/.exec(address);
  if (parts === null) return [];
  const [, host = "", portText = ""] = parts;
  const port = Number(portText);
  const name = "kubernetes";
  const https = { name: "https", protocol: "TCP" };
  const service = wantedOf("services", "default", {
    metadata: { name, labels: { component: "apiserver", provider: "kubernetes" } },
    spec: {
      clusterIP: KUBERNETES_ADDRESS,
      ports: [{ ...https, port: 443, targetPort: port }],
      sessionAffinity: "None",
      type: "ClusterIP",
    },
  });
  const isIpv6 = host.includes(":");
  if (!isIpv6 && !/^[0-9.]+$/.test(host)) return [service];
  return [
    service,
    wantedOf("endpoints", "default", {
      metadata: { name, labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } },
      subsets: [{ addresses: [{ ip: host }], ports: [{ ...https, port }] }],
    }),
    wantedOf("endpointslices.discovery.k8s.io", "default", {
      metadata: { name, labels: { "kubernetes.io/service-name": name } },
      addressType: isIpv6 ? "IPv6" : "IPv4",
      endpoints: [{ addresses: [host], conditions: { ready: true } }],
      ports: [{ ...https, port }],
    }),
  ];
}

/** Whether everything that is wanted is there; what else is in an object is not this controller's. */
function isAsWanted(current: ApiObject, wanted: ApiObject): boolean {
  return jsonEqual(merge(current, wanted), current);
}

function merge(current: ApiObject, { metadata, ...content }: ApiObject): ApiObject {
  const labels = { ...current.metadata.labels, ...metadata.labels };
  const members = Object.entries(content).map(([key, value]) => {
    const isSpec = key === "spec" && typeof current[key] === "object";
    return [key, isSpec ? { ...(current[key] as object), ...(value as object) } : value] as const;
  });
  return {
    ...current,
    metadata: { ...current.metadata, ...(Object.keys(labels).length === 0 ? {} : { labels }) },
    ...Object.fromEntries(members),
  };
}
