import { expect, test } from "vitest";
import { layoutOf, nodeNames } from "./layout.ts";

const driverName = "loop.csi.mooring.dev";
const nodes = nodeNames(3);

test("everything is below the data directory", () => {
  const layout = layoutOf("/data", { nodes, driverName });

  expect(layout).toMatchObject({
    pool: "/data/pool",
    sockets: "/data/run",
    controllerSocket: "/data/run/controller.sock",
  });
  expect(layout.node("node-2")).toEqual({
    rootDir: "/data/nodes/node-2",
    pluginsRegistry: "/data/run/node-2",
    driverSocket: "/data/run/node-2.sock",
  });
});

test("sockets of a deep data directory are elsewhere, short enough, and always at the same place", () => {
  const deep = `/${"a".repeat(120)}`;

  const layout = layoutOf(deep, { nodes, driverName });

  const longest = `${layout.node("node-3").pluginsRegistry}/${driverName}-reg.sock`;
  expect(longest.length).toBeLessThanOrEqual(103);
  expect(layout.sockets).toBe(layoutOf(deep, { nodes, driverName }).sockets);
  expect(layout.sockets).not.toBe(layoutOf(`${deep}b`, { nodes, driverName }).sockets);
  expect(layout.pool).toBe(`${deep}/pool`);
});
