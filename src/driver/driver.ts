import { Controller, GroupController, Identity, Node } from "../csi/gen/csi_pb.ts";
import { serve, type ServedMethod } from "../csi/methods.ts";
import { createContext, type DriverDeps } from "./context.ts";
import { createController } from "./controller.ts";
import { createGroups } from "./groups.ts";
import { createIdentity } from "./identity.ts";
import { createNode } from "./node.ts";
import { withDefaults, type DriverOptions } from "./options.ts";
import { recover } from "./recovery.ts";

export interface LoopDriver {
  /** Undoes or finishes what a killed process left. Until it has ended Probe says not ready. */
  recover(): Promise<void>;
  /** The functions behind the socket. */
  readonly methods: readonly ServedMethod[];
  counts(): {
    readonly volumes: number;
    readonly snapshots: number;
    readonly attachments: number;
    readonly staged: number;
  };
}

/** A CSI driver whose volumes are image files on this machine. It starts nothing by itself. */
export function createLoopDriver(deps: DriverDeps, options: DriverOptions): LoopDriver {
  const settings = withDefaults(options);
  // -1 is for tests of callers that must cope with any limit.
  const attachLimit = settings.attachLimit === -1 ? 1 + deps.random.int(10) : settings.attachLimit;
  const context = createContext(deps, { ...settings, attachLimit });
  let ready = false;
  const { serves } = context.settings;
  return {
    async recover() {
      await recover(context);
      ready = true;
    },
    methods: [
      ...serve(Identity, createIdentity(context, { isReady: () => ready })),
      ...(serves === "node" ? [] : serve(Controller, createController(context))),
      ...(serves === "node" ? [] : serve(GroupController, createGroups(context))),
      ...(serves === "controller" ? [] : serve(Node, createNode(context))),
    ],
    counts: () => ({
      volumes: context.volumes.all().length,
      snapshots: context.snapshots.all().length,
      attachments: context.volumes.all().reduce((sum, { attachments }) => sum + attachments.length, 0),
      staged: context.staged.all().length,
    }),
  };
}
