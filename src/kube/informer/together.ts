import type { KubeObject } from "../object.ts";
import type { Informer } from "./informer.ts";

/** Several informers that start, end and are complete as one. */
export type Together = Pick<Informer<KubeObject>, "run" | "hasSynced"> & {
  whenSynced(signal: AbortSignal): Promise<void>;
};

export function together(informers: readonly Together[]): Together {
  return {
    async run(signal) {
      await Promise.all(informers.map((informer) => informer.run(signal)));
    },
    async whenSynced(signal) {
      await Promise.all(informers.map((informer) => informer.whenSynced(signal)));
    },
    hasSynced: () => informers.every((informer) => informer.hasSynced()),
  };
}
