import type { Channel } from "../../csi/methods.ts";
import type { Transport } from "../../kube/transport/transport.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import type { NodeWorld } from "../../sim/node-world.ts";

/** An agent as it is seen from outside, that dies at its n-th step: a change of its machine, a request, a driver's call. */
export function createMortal(world: NodeWorld, dieAt: number | undefined, when: "before" | "after") {
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  const log: string[] = [];
  let dead = false;
  const never = () => new Promise<never>(() => undefined);

  async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (dead || host.isDead) return never();
    const number = log.push(name) - 1;
    const dying = number === dieAt;
    if (dying) {
      dead = true;
      // Whatever it would change from now on, it does not live to see.
      host.dieAt(0);
    }
    if (dying && when === "before") return never();
    const answer = await work();
    return dead ? never() : answer;
  }

  const transport = (real: Transport): Transport => ({
    ...real,
    request: (request) =>
      step(`${request.method} ${request.path.split("?")[0]}`, () => real.request(request)),
    stream: (request) => (dead ? never() : real.stream(request)),
    close: () => real.close(),
  });
  const channel = (real: Channel): Channel => ({
    ...real,
    unary: (method, request, options) => step(method.name, () => real.unary(method, request, options)),
  });
  return {
    start: () => world.start({ host, wrapTransport: transport, wrapChannel: channel }),
    log,
    get dead() {
      return dead;
    },
  };
}
