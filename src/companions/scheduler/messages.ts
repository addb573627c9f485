import type { Refusal } from "./view.ts";

/**
 * `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`, as upstream says it and people search for it.
 * A problem of the pod itself takes the place of the list. Sorted, so that the same state gives the same text.
 */
export function explainRefusals(nodes: number, why: string | readonly (readonly Refusal[])[]): string {
  const available = `0/${nodes} nodes are available`;
  if (typeof why === "string") return `${available}: ${why}.`;
  if (nodes === 0) return "no nodes available to schedule pods";
  const counts = new Map<string, number>();
  for (const { text } of why.flat()) counts.set(text, (counts.get(text) ?? 0) + 1);
  const list = [...counts].map(([text, count]) => `${count} ${text}`).sort();
  return `${available}: ${list.join(", ")}.`;
}
