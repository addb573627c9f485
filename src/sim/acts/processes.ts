import type { ActOf, ProcessAct } from "../act.ts";
import { NO_FAULTS, type NetworkFaults } from "../faulty-transport.ts";
import type { ActContext, Performers } from "./context.ts";

/** Processes die, stand still and lose their network. */
export const PROCESSES: Performers<ProcessAct["kind"]> = {
  kill: takeDown,
  stop: takeDown,
  freeze: async ({ process, forMs }, { world }) => world.processes.get(process)?.freezeFor(forMs),
  "kill-server": async ({ forMs }, { world: { server }, later }) => {
    server.kill();
    later(forMs, () => server.start());
  },
  link: async ({ process: name, state, forMs }, { world, later }) => {
    const process = world.processes.get(name);
    process?.setLink(state);
    later(forMs, async () => process?.setLink("up"));
  },
  lossy: async ({ process: name, rate, forMs }, { world, later }) => {
    const process = world.processes.get(name);
    process?.setFaults(faultsOf(rate));
    later(forMs, async () => process?.setFaults(NO_FAULTS));
  },
  "original-controller": replaceController,
  "set-clock": async ({ process, byMs }, { world }) => world.processes.get(process)?.jumpWall(byMs),
};

/** Every process of ours whose machine is there runs and has a perfect network. */
export async function healProcesses({ world }: ActContext): Promise<void> {
  for (const process of world.processes.values()) {
    process.setLink("up");
    process.setFaults(NO_FAULTS);
    if (world.mayRun(process.name)) process.start();
  }
  await world.handover.toOurs({ kill: false });
}

async function takeDown(act: ActOf<"kill" | "stop">, { world, later }: ActContext): Promise<void> {
  const process = world.processes.get(act.process);
  if (process === undefined) return;
  if (act.kind === "kill") process.kill();
  else process.stop();
  later(act.forMs, async () => {
    if (world.mayRun(act.process)) process.start();
  });
}

/** What the original sends late is no defect of ours: its lists carry no precondition, and what it does not hear it takes for absent. */
async function replaceController(
  { kill, rate, forMs }: ActOf<"original-controller">,
  { world: { handover }, later }: ActContext,
): Promise<void> {
  if (!handover.isOurs) return;
  await handover.toOriginal({ kill, faults: { ...faultsOf(rate), late: 0, silent: 0 } });
  later(forMs, () => handover.toOurs({ kill }));
}

/** Everything that can happen to a request or a watch, each with a part of the rate. */
function faultsOf(rate: number): NetworkFaults {
  return {
    ...NO_FAULTS,
    unreachable: rate / 3,
    lostRequest: rate / 10,
    lostAnswer: rate / 2,
    late: rate / 3,
    lateMsMax: 20_000,
    tooMany: rate / 3,
    serverError: rate / 3,
    expired: rate / 20,
    conflict: rate / 3,
    cut: rate / 5,
    silent: rate / 20,
    repeated: rate / 3,
    expiredInStream: rate / 10,
    garbled: rate / 20,
    latencyMsMax: 200,
  };
}
