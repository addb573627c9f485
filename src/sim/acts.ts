import { renderAct, type Act } from "./act.ts";
import { ATTACHMENTS, healAttachments } from "./acts/attachments.ts";
import { ActContext, type Performers } from "./acts/context.ts";
import { COPIES, healCopies, removeSnapshots } from "./acts/copies.ts";
import { DRIVERS, healDrivers } from "./acts/drivers.ts";
import { healHosts, HOSTS } from "./acts/hosts.ts";
import { healNodes, healPower, NODES } from "./acts/nodes.ts";
import { healObjects, OBJECTS } from "./acts/objects.ts";
import { healProcesses, PROCESSES } from "./acts/processes.ts";
import { healWorkload, WORKLOAD } from "./acts/workload.ts";
import type { Apps } from "./apps.ts";
import type { About } from "./trace.ts";
import type { World } from "./world.ts";

const PERFORMERS: Performers<Act["kind"]> = {
  ...WORKLOAD,
  ...COPIES,
  ...OBJECTS,
  ...NODES,
  ...ATTACHMENTS,
  ...PROCESSES,
  ...DRIVERS,
  ...HOSTS,
};

/** Carries out the acts of a plan, and takes everything back that they broke. */
export class Acts {
  readonly #context: ActContext;

  constructor(world: World, apps: Apps) {
    this.#context = new ActContext(world, apps);
  }

  perform(act: Act): void {
    const { trace } = this.#context.world;
    trace.add("plan", renderAct(act), aboutAct(act));
    const perform = PERFORMERS[act.kind] as (act: Act, context: ActContext) => Promise<unknown>;
    void this.#context
      .begin(perform(act, this.#context))
      .catch((error: unknown) =>
        trace.add("plan", `failed: ${error instanceof Error ? error.message : String(error)}`),
      );
  }

  /** Nothing is broken any more, and nobody breaks anything. */
  async heal(): Promise<void> {
    const context = this.#context;
    context.isHealed = true;
    await context.world.server.start();
    healHosts(context);
    await healDrivers(context);
    await healPower(context);
    await healProcesses(context);
    // What somebody asked for while the server was away would else be done after it was taken back.
    await context.allEnded();
    await healNodes(context);
    await healObjects(context);
    await healAttachments(context);
    await healCopies(context);
    await healWorkload(context);
  }

  /** Everything that people made goes. */
  removeWorkload(): void {
    const { apps } = this.#context;
    for (const name of [...apps.apps.keys()]) void apps.remove(name);
    void removeSnapshots(this.#context);
  }
}

/** Whom it hits: a process, a node, a machine. */
function aboutAct(act: Act): About {
  const { process, node, machine, app } = act as Readonly<Record<string, unknown>>;
  const to = process ?? (app === undefined ? node : undefined) ?? machine;
  return { ...(typeof to === "string" && { to }), ...(typeof app === "string" && { claim: app }) };
}
