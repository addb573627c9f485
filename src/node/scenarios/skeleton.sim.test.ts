import { expect, test } from "vitest";
import { given } from "../../sim/node-world.ts";

test("walking skeleton: desired, in use, attached, staged, published, and all the way back", async () => {
  const world = await given({ pods: { web: { uses: ["v"] } } });

  expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  expect(world.inUse()).toEqual(["v"]);

  await world.removePod("web");
  await world.settle();

  expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
  expect(world.inUse()).toEqual([]);
  expect(await world.mountPoints()).toEqual([]);
});
