import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where the parts of `mooring up` keep their things below the data directory. Pure. */
export interface Layout {
  /** Images and records of the loop driver: the volumes themselves. */
  readonly pool: string;
  /** Sockets only; made anew at each start. */
  readonly sockets: string;
  readonly controllerSocket: string;
  node(name: string): NodeLayout;
}

export interface NodeLayout {
  /** What `/var/lib/kubelet` is on a real node. */
  readonly rootDir: string;
  readonly pluginsRegistry: string;
  readonly driverSocket: string;
}

/** The kernel takes 107 characters for the path of a socket on Linux and 103 on macOS. */
const SOCKET_PATH_MAX = 103;

export function layoutOf(
  dataDir: string,
  { nodes, driverName }: { readonly nodes: readonly string[]; readonly driverName: string },
): Layout {
  const beside = socketsIn(join(dataDir, "run"), driverName);
  const longest = Math.max(...nodes.map((name) => beside.registration(name).length));
  // A deep data directory has its sockets elsewhere, under a name that is always the same for it.
  const id = createHash("sha256").update(dataDir).digest("hex").slice(0, 12);
  const sockets =
    longest <= SOCKET_PATH_MAX ? beside : socketsIn(join(tmpdir(), `mooring-${id}`), driverName);
  return {
    pool: join(dataDir, "pool"),
    sockets: sockets.folder,
    controllerSocket: join(sockets.folder, "controller.sock"),
    node: (name) => ({
      rootDir: join(dataDir, "nodes", name),
      pluginsRegistry: sockets.registry(name),
      driverSocket: join(sockets.folder, `${name}.sock`),
    }),
  };
}

function socketsIn(folder: string, driverName: string) {
  const registry = (node: string) => join(folder, node);
  return {
    folder,
    registry,
    registration: (node: string) => join(registry(node), `${driverName}-reg.sock`),
  };
}

/** `node-1`, `node-2`, ... */
export function nodeNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `node-${index + 1}`);
}
