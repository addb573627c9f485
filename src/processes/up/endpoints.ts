import { readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isObject } from "../../volumes/untrusted.ts";
import { field, textAt } from "../../views/fields.ts";
import type { DebugPage } from "../debug-reading.ts";
import { openDataDirectory } from "../data-directory.ts";

/** Where the parts of one `mooring up` answer: pages that say what objects do not. */
export interface Endpoints {
  /** Of the API server, as the kubeconfig has it: a kubeconfig of another cluster may lie in the same folder. */
  readonly server: string;
  readonly controller: string;
  readonly attacher: string;
  /** By the name of the node. */
  readonly nodes: Readonly<Record<string, string>>;
}

/** Beside the kubeconfig, so that whoever reads with that one finds it. */
const FILE = "endpoints.json";

/** Any free port of this machine, for this machine alone: several clusters may run here. */
export const ANY_PORT = { host: "127.0.0.1", port: 0 } as const;

/** For its owner alone, and never half of it. */
export async function writeEndpoints(dataDir: string, endpoints: Endpoints): Promise<void> {
  const directory = await openDataDirectory(dataDir);
  await directory.rewrite(FILE, `${JSON.stringify(endpoints, null, 2)}\n`);
}

/** At a clean end, and at a start: what an earlier life wrote there is over. */
export async function removeEndpoints(dataDir: string): Promise<void> {
  await rm(join(dataDir, FILE), { force: true });
}

/** The pages of the `mooring up` that wrote this kubeconfig; none where there is no such file, or it is another's. */
export async function findPages(kubeconfig: string, server: string): Promise<readonly DebugPage[]> {
  const text = await readFile(join(dirname(kubeconfig), FILE), "utf8").catch(() => "");
  return pagesIn(text, server);
}

/** Anybody may have written the file: only addresses of this machine are asked. Pure. */
export function pagesIn(text: string, server: string): readonly DebugPage[] {
  const known = parsed(text);
  return textAt(known, "server") === server ? pagesOf(known) : [];
}

export function pagesOf(known: unknown): readonly DebugPage[] {
  const nodes = field(known, "nodes");
  const urls = isObject(nodes) ? Object.values(nodes as Record<string, unknown>) : [];
  const pages: readonly DebugPage[] = [
    { process: "controller", url: textAt(known, "controller") },
    { process: "attacher", url: textAt(known, "attacher") },
    ...urls.map((url) => ({ process: "node", url: typeof url === "string" ? url : "" }) as const),
  ];
  return pages.filter(({ url }) => /^http:\/\/127\.0\.0\.1:\d{1,5}$/.test(url));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
