import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import type { Clock } from "../../base/clock.ts";
import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";
import { fromLabelSelectorObject, matchesLabels } from "../../kube/selectors.ts";
import { isObject, text } from "../../volumes/untrusted.ts";
import { VolumeError } from "../errors.ts";
import type { TrustBundles } from "./trust-bundle.ts";

type ClusterTrustBundle = KubeObject & {
  readonly spec?: { readonly signerName?: string; readonly trustBundle?: string };
};

/** Newest first: which of them a cluster serves depends on its age and its settings. */
const VERSIONS = ["v1", "v1beta1", "v1alpha1"] as const;

/**
 * Pods of one bundle that are refreshed together ask once: every minute each of 500 pods has its turn, and within this
 * time they share an answer. A change arrives that much later at most.
 */
const SHARED_MS = 5_000;
/** Questions remembered: names and signers that pods of one node ask for. Past it the oldest is asked again. */
const SHARED_MAX = 64;

/** ClusterTrustBundles of the API server. Lists only: there a 404 means that it has no such API, never that one is missing. */
export function createTrustBundles({
  client,
  clock,
}: {
  readonly client: Pick<Client, "list">;
  readonly clock: Clock;
}): TrustBundles {
  const shared = new Map<string, { readonly atMs: number; readonly answer: Promise<Bundles> }>();
  let served: (typeof VERSIONS)[number] | undefined;

  /** For everybody who waits, so it does not end with the pod that came first; the client has a deadline of its own. */
  async function ask(fieldSelector: string): Promise<Bundles> {
    for (const version of served ? [served] : VERSIONS)
      try {
        const { items } = await client.list(resourceOf(version), { fieldSelector });
        served = version;
        return items;
      } catch (error) {
        served = undefined;
        if (!isKubeError(error, "NotFound")) throw readFailed(fieldSelector, error);
      }
    throw new VolumeError(
      "final",
      `this cluster serves no ClusterTrustBundles (certificates.k8s.io ${VERSIONS.join(", ")}); ` +
        "turn that API on, or take the clusterTrustBundle source out of the volume",
      { kind: "not-supported" },
    );
  }

  function list(field: string, value: string): Promise<Bundles> {
    const fieldSelector = `${field}=${value.replace(/[\\,=]/g, "\\$&")}`;
    const known = shared.get(fieldSelector);
    if (known && clock.now() - known.atMs < SHARED_MS) return known.answer;
    const answer = ask(fieldSelector);
    shared.delete(fieldSelector);
    shared.set(fieldSelector, { atMs: clock.now(), answer });
    const [oldest] = shared.keys();
    if (shared.size > SHARED_MAX && oldest !== undefined) shared.delete(oldest);
    // What failed is nobody else's answer.
    answer.catch(() => {
      if (shared.get(fieldSelector)?.answer === answer) shared.delete(fieldSelector);
    });
    return answer;
  }

  return {
    async byName(name) {
      const [bundle] = await list("metadata.name", name);
      return bundle && pemOf(bundle);
    },
    async bySigner(signer, selector) {
      if (selector === undefined) return [];
      const bundles = await list("spec.signerName", signer);
      return bundles.filter(({ metadata }) => matches(selector, metadata.labels)).map(pemOf);
    },
  };
}

type Bundles = readonly ClusterTrustBundle[];

function resourceOf(version: string): Resource<ClusterTrustBundle> {
  return {
    group: "certificates.k8s.io",
    version,
    kind: "ClusterTrustBundle",
    plural: "clustertrustbundles",
    namespaced: false,
  };
}

function readFailed(fieldSelector: string, error: unknown): VolumeError {
  const reason = isKubeError(error) ? error.detail : error instanceof Error ? error.message : String(error);
  return new VolumeError("transient", `reading ClusterTrustBundles with ${fieldSelector}: ${reason}`, {
    cause: error,
  });
}

function matches(selector: LabelSelector, labels: Readonly<Record<string, string>> | undefined): boolean {
  return matchesLabels(fromLabelSelectorObject(selector), labels ?? {});
}

function pemOf({ spec }: ClusterTrustBundle): string {
  return isObject(spec) ? text(spec.trustBundle) : "";
}
