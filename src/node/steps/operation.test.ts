import { expect, test } from "vitest";
import { PendingOperations } from "../../operations/pending.ts";

const MOUNT = "volume_mount";
const pod = (name: string) => ({ volume: "v", pod: name });

test("scenario 50: one pod's step under way keeps the whole volume, whatever failed for others", () => {
  const operations = new PendingOperations();
  for (const name of ["pod1", "pod2"]) {
    operations.start(pod(name), MOUNT, 0);
    operations.fail(pod(name), MOUNT, "no", 0);
  }

  expect(operations.start(pod("pod3"), MOUNT, 0)).toEqual({ kind: "started" });

  expect(operations.start({ volume: "v" }, "unmount_device", 10_000)).toMatchObject({
    kind: "running",
    key: pod("pod3"),
  });
});

test("scenario 51: each pod waits for its own failures", () => {
  const operations = new PendingOperations();
  for (const atMs of [0, 1_000, 3_000]) {
    operations.start(pod("pod1"), MOUNT, atMs);
    operations.fail(pod("pod1"), MOUNT, "no", atMs);
  }
  operations.start(pod("pod2"), MOUNT, 3_000);
  operations.fail(pod("pod2"), MOUNT, "no", 3_000);

  expect(operations.backoffOf(pod("pod1"), MOUNT, 3_000)?.failures).toBe(3);
  expect(operations.backoffOf(pod("pod2"), MOUNT, 3_000)?.failures).toBe(1);
  expect(operations.start(pod("pod2"), MOUNT, 3_600)).toEqual({ kind: "started" });
});
