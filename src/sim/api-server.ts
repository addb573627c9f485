import { silentLogger } from "../base/log.ts";
import { noMetrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import { createHandler } from "../apiserver/handler.ts";
import { createSystemNamespaces } from "../apiserver/namespaces.ts";
import { createMemoryStore } from "../apiserver/store/memory.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import type { Handler } from "../kube/handler.ts";
import { createMemoryTransport } from "../kube/transport/memory-transport.ts";
import type { Transport } from "../kube/transport/transport.ts";
import type { SimScheduler } from "./scheduler.ts";

/** The embedded API server itself, on simulated time; `client` talks to it over a perfect network. */
export async function createSimApiServer(
  scheduler: SimScheduler,
  random: Random,
  { behaves = (handler) => handler }: { behaves?: (handler: Handler) => Handler } = {},
) {
  const clock = scheduler.createClock();
  const store = createMemoryStore({ clock });
  await createSystemNamespaces({ store, clock, random: random.fork("namespaces") });
  const handler = createHandler({ store, clock, random, log: silentLogger, metrics: noMetrics });
  const transport: Transport = createMemoryTransport(behaves(handler));
  const client: Client = createClient({
    transport: createMemoryTransport(handler),
    clock,
    random: random.fork("client"),
  });
  return { store, transport, client };
}

/** A server from before 1.27, which does not know streaming lists and says so. */
export function refusesStreamingLists(handler: Handler): Handler {
  return async (request) => {
    if (!request.path.includes("sendInitialEvents")) return handler(request);
    const status = { kind: "Status", status: "Failure", reason: "Invalid", code: 422, message: "forbidden" };
    return { status: 422, headers: {}, body: JSON.stringify(status) };
  };
}

/** A server, or a proxy before it, that overlooks the parameter: it watches, and never says where the state ends. */
export function ignoresStreamingLists(handler: Handler): Handler {
  return (request) =>
    handler({
      ...request,
      path: request.path.replace(/&(sendInitialEvents|resourceVersionMatch)=[^&]*/g, ""),
    });
}
