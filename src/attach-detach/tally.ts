import type { NodeName } from "../volumes/names.ts";
import type { PluginRegistry } from "../volumes/registry.ts";
import type { VolumeSpec } from "../volumes/spec.ts";

/**
 * The counts behind the state gauges, kept as things change: upstream walks and resolves every volume of every
 * pod at each scrape.
 */
export class Tally {
  readonly #plugins: Pick<PluginRegistry, "bySpec">;
  /** Placements by plugin. */
  readonly desired = new Map<string, number>();
  readonly actual = new Map<string, number>();
  /** References from pods, by node and plugin: `inUse.get(node).get(plugin)`. */
  readonly inUse = new Map<NodeName, Map<string, number>>();

  constructor(plugins: Pick<PluginRegistry, "bySpec">) {
    this.#plugins = plugins;
  }

  wanted(spec: VolumeSpec, by: 1 | -1): void {
    this.#count(this.desired, spec, by);
  }

  /** What was only found by name belongs to no plugin we could count it under. */
  held(spec: VolumeSpec | undefined, by: 1 | -1): void {
    if (spec !== undefined) this.#count(this.actual, spec, by);
  }

  referenced(node: NodeName, plugin: string, by: 1 | -1): void {
    const plugins = this.inUse.get(node) ?? new Map<string, number>();
    this.inUse.set(node, plugins);
    add(plugins, plugin, by);
    if (plugins.size === 0) this.inUse.delete(node);
  }

  #count(counts: Map<string, number>, spec: VolumeSpec, by: 1 | -1): void {
    const label = this.#plugins.bySpec(spec)?.metricName(spec);
    if (label !== undefined) add(counts, label, by);
  }
}

function add(counts: Map<string, number>, label: string, by: number): void {
  const count = (counts.get(label) ?? 0) + by;
  if (count === 0) counts.delete(label);
  else counts.set(label, count);
}
