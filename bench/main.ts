import { apiserver } from "./apiserver/bench.ts";
import { parsePeer, PEER_OPTIONS } from "./apiserver/peer.ts";
import { attachDetach } from "./attach-detach/bench.ts";
import { ATTACH_DETACH_OPTIONS, parseAttachDetach } from "./attach-detach/options.ts";
import { attacher } from "./attacher/bench.ts";
import { csi } from "./csi/bench.ts";
import { informer } from "./informer/bench.ts";
import { node, NODE_OPTIONS } from "./node/bench.ts";
import { serveRole } from "./child.ts";

type Bench = (options: { tiny: boolean }, rest: readonly string[]) => Promise<boolean>;

/** `npm run bench -- NAME [--tiny]`: data on stdout, the last line of it JSON. Exit 0 kept, 1 missed, 2 misused. */
const benches: Readonly<Record<string, { readonly run: Bench; readonly takes?: readonly string[] }>> = {
  informer: { run: informer },
  apiserver: {
    run: (options, rest) => apiserver({ ...options, ...parsePeer(rest) }),
    takes: PEER_OPTIONS,
  },
  attacher: { run: attacher },
  csi: { run: csi },
  node: {
    run: (options, rest) =>
      node({ ...options, only: rest.includes("--only") ? rest[rest.indexOf("--only") + 1] : undefined }),
    takes: NODE_OPTIONS,
  },
  "attach-detach": {
    run: (options, rest) => attachDetach({ ...options, ...parseAttachDetach(rest) }),
    takes: ATTACH_DETACH_OPTIONS,
  },
};

/** What children of a benchmark do; loaded only there, so that none weighs on what another one measures. */
const roles = {
  "informer-server": async () => (await import("./informer/server.ts")).serve,
  "informer-ours": async () => (await import("./informer/ours.ts")).measureOurs,
  "informer-theirs": async () => (await import("./informer/theirs.ts")).measureTheirs,
  "apiserver-server": async () => (await import("./apiserver/server.ts")).serve,
  "apiserver-load": async () => (await import("./apiserver/load.ts")).runLoad,
  "attach-detach-scale": async () => (await import("./attach-detach/scale.ts")).measureScale,
  "attach-detach-controller": async () => (await import("./attach-detach/our-controller.ts")).control,
  "attach-detach-attacher": async () => (await import("./attach-detach/attacher.ts")).attach,
  "csi-server": async () => (await import("./csi/server.ts")).serve,
  "csi-load": async () => (await import("./csi/load.ts")).runLoad,
  "attach-detach-load": async () => (await import("./attach-detach/cluster-load.ts")).runClusterTask,
};

const [first, ...rest] = process.argv.slice(2).filter((argument) => argument !== "--");
if (first === "--role") await serveRole(roles, rest[0]);
else process.exitCode = await run(first, rest);

async function run(name: string | undefined, options: readonly string[]): Promise<number> {
  const bench = Object.hasOwn(benches, name ?? "") ? benches[name ?? ""] : undefined;
  const takes = bench?.takes ?? [];
  // Options of a benchmark have a value each, in the argument behind them.
  const unknown = options.filter(
    (option, at) => option !== "--tiny" && !takes.includes(option) && !takes.includes(options[at - 1] ?? ""),
  );
  if (bench === undefined || unknown.length > 0) {
    const known = Object.keys(benches).join(", ");
    process.stderr.write(`bench: ${[name ?? "(none)", ...unknown].join(" ")} is not known\n`);
    process.stderr.write(`usage: npm run bench -- NAME [--tiny], with NAME one of: ${known}\n`);
    return 2;
  }
  try {
    return (await bench.run({ tiny: options.includes("--tiny") }, options)) ? 0 : 1;
  } catch (error) {
    // Whoever reads only the last line learns of it too.
    const message = error instanceof Error ? error.message : String(error);
    process.stdout.write(`${JSON.stringify({ bench: name, ratio: null, ok: false, error: message })}\n`);
    return 1;
  }
}
