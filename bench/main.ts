import { informer } from "./informer/bench.ts";
import { serveRole } from "./child.ts";

/** `npm run bench -- NAME [--tiny]`: data on stdout, the last line of it JSON. Exit 0 kept, 1 missed, 2 misused. */
const benches: Readonly<Record<string, (options: { tiny: boolean }) => Promise<boolean>>> = { informer };

/** What children of a benchmark do; loaded only there, so that none weighs on what another one measures. */
const roles = {
  "informer-server": async () => (await import("./informer/server.ts")).serve,
  "informer-ours": async () => (await import("./informer/ours.ts")).measureOurs,
  "informer-theirs": async () => (await import("./informer/theirs.ts")).measureTheirs,
};

const [first, ...rest] = process.argv.slice(2).filter((argument) => argument !== "--");
if (first === "--role") await serveRole(roles, rest[0]);
else process.exitCode = await run(first, rest);

async function run(name: string | undefined, options: readonly string[]): Promise<number> {
  const bench = Object.hasOwn(benches, name ?? "") ? benches[name ?? ""] : undefined;
  const unknown = options.filter((option) => option !== "--tiny");
  if (bench === undefined || unknown.length > 0) {
    const known = Object.keys(benches).join(", ");
    process.stderr.write(`bench: ${[name ?? "(none)", ...unknown].join(" ")} is not known\n`);
    process.stderr.write(`usage: npm run bench -- NAME [--tiny], with NAME one of: ${known}\n`);
    return 2;
  }
  try {
    return (await bench({ tiny: options.includes("--tiny") })) ? 0 : 1;
  } catch (error) {
    // Whoever reads only the last line learns of it too.
    const message = error instanceof Error ? error.message : String(error);
    process.stdout.write(`${JSON.stringify({ bench: name, ratio: null, ok: false, error: message })}\n`);
    return 1;
  }
}
