import type { Gauge, GaugeSpec } from "../base/metrics.ts";
import type { LifeContext } from "./supervisor.ts";

/** Gauges of one process that are asked when somebody looks, as a scrape would. */
export class SampledGauges {
  #collectors: GaugeSpec<string>[] = [];

  /** The context of a new life; gauges of the one before are forgotten. */
  measure(context: LifeContext): LifeContext {
    this.#collectors = [];
    const gauge = <L extends string>(spec: GaugeSpec<L>): Gauge<L> => {
      if (spec.collect !== undefined) this.#collectors.push(spec);
      return { set: () => undefined, reset: () => undefined };
    };
    return { ...context, metrics: { ...context.metrics, gauge } };
  }

  /** Label sets of the gauge that are above 0 now. */
  sample(name: string): readonly Readonly<Record<string, string>>[] {
    const found: Readonly<Record<string, string>>[] = [];
    const set = (value: number, labels: Readonly<Record<string, string>> = {}) => {
      if (value > 0) found.push(labels);
    };
    for (const { collect } of this.#collectors.filter((spec) => spec.name === name))
      collect?.({ set, reset: () => undefined });
    return found;
  }
}
