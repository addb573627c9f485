import { existsSync, readFileSync } from "node:fs";
import { productInfo } from "../../processes/product.ts";

/** Releases this program works with, first and last; what lies between is conformance's and the API's promise. */
const KUBERNETES = { min: "1.26", max: "1.37" };
const CSI = { min: "1.0", max: "1.12" };

/** What a report of a fault should begin with. */
export interface VersionInfo {
  readonly version: string;
  /** Which sources a package was made from; not known in a checkout. */
  readonly commit?: string;
  readonly node: string;
  /** Operating system and processor, as Node.js names them. */
  readonly platform: string;
  /** The release whose API `mooring apiserver` and `mooring up` serve. */
  readonly kubernetesApi: string;
  /** The clusters that controller, attacher, node, get and why work with. */
  readonly kubernetes: { readonly min: string; readonly max: string };
  /** The drivers that attacher and node work with. */
  readonly csi: { readonly min: string; readonly max: string };
}

export function versionInfo(): VersionInfo {
  const { version, kubernetesApi, node } = productInfo();
  const commit = readCommit(new URL("../../../commit", import.meta.url));
  return {
    version,
    ...(commit !== undefined && { commit }),
    node,
    platform: `${process.platform}-${process.arch}`,
    kubernetesApi,
    kubernetes: KUBERNETES,
    csi: CSI,
  };
}

/** dist/commit, which scripts/pack.mjs writes into packages. */
function readCommit(file: URL): string | undefined {
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
}
