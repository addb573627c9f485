import type { ClusterTrustBundleProjection } from "kubernetes-types/core/v1.js";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import { VolumeError } from "../errors.ts";

/** Reads ClusterTrustBundles, which only newer clusters have. Each answer is PEM text. */
export interface TrustBundles {
  /** Undefined where there is none of that name. */
  byName(name: string, signal: AbortSignal): Promise<string | undefined>;
  /** Those of a signer whose labels match; without a selector none matches, with an empty one all do. */
  bySigner(
    signer: string,
    selector: LabelSelector | undefined,
    signal: AbortSignal,
  ): Promise<readonly string[]>;
}

/** All anchors that were asked for, each once, in one order whatever the server's: unchanged stays unchanged. */
export async function trustBundlePayload(
  bundles: TrustBundles | undefined,
  { name, signerName, labelSelector, optional = false }: ClusterTrustBundleProjection,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (!name && !signerName)
    throw new VolumeError(
      "final",
      "ClusterTrustBundle projection requires either name or signerName to be set",
    );
  if (bundles === undefined)
    throw new VolumeError("final", "ClusterTrustBundle projection is not supported by this agent's cluster", {
      kind: "not-supported",
    });
  const texts = name
    ? [(await bundles.byName(name, signal)) ?? ""]
    : await bundles.bySigner(signerName ?? "", labelSelector, signal);
  const anchors = [...new Set(texts.flatMap(certificatesIn))].sort();
  if (anchors.length === 0 && !optional) {
    const what = name ? `ClusterTrustBundle ${name}` : `ClusterTrustBundles of signer ${signerName ?? ""}`;
    throw new VolumeError("transient", `${what}: there is none yet; it will be tried again`);
  }
  return Buffer.from(anchors.map((anchor) => `${anchor}\n`).join(""));
}

function certificatesIn(pem: string): readonly string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
