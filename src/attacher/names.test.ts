import { expect, test } from "vitest";
import { finalizerOf, leaseNameOf } from "./names.ts";

for (const [driver, sanitized] of [
  ["csi/test", "csi-test"],
  ["trailing\\", "trailing-X"],
  ["pd.csi.storage.gke.io", "pd-csi-storage-gke-io"],
  ["Plain-1", "Plain-1"],
] as const) {
  test(`${driver} is ${sanitized} in finalizers and leases`, () => {
    expect(finalizerOf(driver)).toBe(`external-attacher/${sanitized}`);
    expect(leaseNameOf(driver)).toBe(`external-attacher-leader-${sanitized}`);
  });
}
