import type { Api } from "../harness/api.ts";

/**
 * How many requests of these kinds (`PATCH nodes/status`) the server has answered so far. Counted there, ours and the
 * peer are counted in the same way; lists and watches are kinds of their own and not per volume.
 */
export async function requestsSent(api: Api, kinds: readonly string[]): Promise<number> {
  return countRequests(await api.text("/metrics"), kinds);
}

export function countRequests(metrics: string, kinds: readonly string[]): number {
  let sum = 0;
  for (const line of metrics.split("\n")) {
    if (!line.startsWith("apiserver_request_total{")) continue;
    const label = (name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? "";
    const subresource = label("subresource");
    const kind = `${label("verb")} ${label("resource")}${subresource === "" ? "" : `/${subresource}`}`;
    if (kinds.includes(kind)) sum += Number(line.slice(line.lastIndexOf(" ") + 1));
  }
  return sum;
}
