// Every mutant, and the plans they are run with.
import { attacherMutants } from "./attacher.mjs";
import { controllerMutants } from "./controller.mjs";
import { driverMutants } from "./driver.mjs";
import { nodeMutants } from "./node.mjs";
import { outsideMutants } from "./outside.mjs";
import { reasonMutants } from "./reasons.mjs";

export const mutants = [
  ...controllerMutants,
  ...nodeMutants,
  ...attacherMutants,
  ...driverMutants,
  ...outsideMutants,
  ...reasonMutants,
];

const MINUTES = 60_000;
const ALONE = { "foreign-attachment": 0 };
/** Left out: a Node that is made again is believed before its agent has reported what it uses, with any mutant or none. */
const NODES_STAY = { "delete-node": 0 };

const DENSE = { durationMs: 5 * MINUTES, everyMs: 4_000 };
/** On two nodes a pod that moves meets its own volume every other time. */
const PAIR = { ...DENSE, nodes: 2 };
const QUIET = { ...NODES_STAY, ...ALONE };
const CONTROLLERS = ["controller-0", "controller-1"];
const AGENTS = ["node-1", "node-2"];

/** What is left of the usual acts when some are drawn a hundred times as often. */
const SELDOM = { durationMs: 5 * MINUTES, everyMs: 4_000, nodes: 2 };
/** Nothing happens but what is added. */
const CALM = Object.fromEntries(
  [
    ...[
      "add-app",
      "remove-app",
      "grow",
      "snapshot",
      "delete-snapshot",
      "restore",
      "clone",
      "pod-without-claim",
    ],
    ...[
      "replace-claim",
      "replace-disk",
      "rename-volume",
      "drain",
      "delete-node",
      "join",
      "leave",
      "reinstall",
    ],
    ...["foreign-attachment", "delete-attachment", "power-off", "blackout", "kill", "stop", "freeze"],
    ...["kill-server", "link", "lossy", "original-controller", "driver-faults", "pool-full", "limit-volumes"],
    ...[
      "upgrade-controller",
      "upgrade-node-driver",
      "rename-node-id",
      "finish-pod",
      "hang-mount",
      "hold-mount",
    ],
    ...["set-clock", "delete-csi-driver", "switch-csi-driver", "stuck", "host-faults", "stale-mount"],
  ].map((kind) => [kind, 0]),
);
/** Of the simulated storage system, on one node at a time. */
const SAN_APP = { storageClass: "san", mode: "ReadWriteOnce", block: false, volumeAfterMs: undefined };
const IN_ORDER = { "delete-pod": { force: false } };

/** Options of `runSeed`, and what they mean. Weights are how often acts of a kind are drawn. */
export const profiles = {
  usual: {
    about: "five minutes with three nodes and four apps; Nodes are not deleted",
    options: { durationMs: 5 * MINUTES, weights: NODES_STAY },
  },
  alone: {
    about: "as `usual`, but nobody makes VolumeAttachments by hand",
    options: { durationMs: 5 * MINUTES, weights: QUIET },
  },
  hands: {
    about: "as `usual`; VolumeAttachments are made by hand ten times as often",
    options: { durationMs: 5 * MINUTES, weights: { ...NODES_STAY, "foreign-attachment": 20 } },
  },
  nodes: {
    about:
      "as `alone`, with acts three times as dense; Nodes are deleted ten times as often as otherwise, processes cut off three times, containers stuck five times",
    options: {
      ...DENSE,
      weights: { ...ALONE, "delete-node": 10, link: 20, stuck: 10, "delete-pod": 30 },
    },
  },
  silent: {
    about:
      "as `alone` on two nodes, with acts three times as dense; processes are cut off from the server, and containers stuck, five times as often; a force comes after one minute instead of six",
    options: {
      ...{ ...PAIR, forceAfterMs: MINUTES },
      weights: { ...QUIET, link: 30, stuck: 10, "delete-pod": 40 },
    },
  },
  stuck: {
    about:
      "as `silent`, but containers are stuck ten times as often, processes seldom cut off, and more pods are deleted",
    options: {
      ...{ ...PAIR, forceAfterMs: MINUTES },
      weights: {
        ...QUIET,
        ...{ link: 3, lossy: 2, stuck: 20, "power-off": 1, "delete-pod": 60 },
      },
    },
  },
  lossy: {
    about: "as `alone` on two nodes, with acts three times as dense; bad networks are five times as frequent",
    options: { ...PAIR, weights: { ...QUIET, lossy: 30, link: 12, "delete-pod": 40 } },
  },
  restarts: {
    about:
      "as `alone` on two nodes, with acts three times as dense; kills are five times, cut links and failing drivers three times as frequent",
    options: { ...PAIR, weights: { ...QUIET, kill: 40, link: 20, "driver-faults": 15, "delete-pod": 40 } },
  },
  drivers: {
    about:
      "as `alone`, with acts three times as dense; failing drivers are five times, new node ids ten times as frequent",
    options: {
      ...DENSE,
      weights: { ...QUIET, "driver-faults": 25, "rename-node-id": 10, "delete-pod": 40 },
    },
  },
  frozen: {
    about: "as `alone`, with acts three times as dense; processes are frozen eight times as often",
    options: { ...DENSE, weights: { ...QUIET, freeze: 40, "delete-pod": 40 } },
  },
  crowd: {
    about: "as `hands` on two nodes, with acts three times as dense",
    options: { ...PAIR, weights: { ...NODES_STAY, "foreign-attachment": 20, "delete-pod": 30 } },
  },
  disguised: {
    about:
      "two nodes and volumes for both, where pods are moved and VolumeAttachments are made for one under the name of the other; little else happens",
    options: {
      ...SELDOM,
      fields: {
        "add-app": { mode: "ReadWriteMany" },
        "foreign-attachment": { node: "node-2", disguisedFor: "node-1" },
      },
      weights: { ...NODES_STAY, "foreign-attachment": 100, "delete-pod": 200 },
    },
  },
  twins: {
    about:
      "two nodes, where pods are moved, VolumeAttachments are made by hand for 20 s, and a slow driver attaches; little else happens",
    options: {
      ...SELDOM,
      fields: {
        ...IN_ORDER,
        "foreign-attachment": { disguisedFor: undefined, forMs: 20_000 },
        "driver-faults": { machine: "infra", rate: 0, slowMs: 10_000, forMs: 2 * MINUTES },
      },
      weights: { ...NODES_STAY, "foreign-attachment": 150, "delete-pod": 200, "driver-faults": 30 },
    },
  },
  returning: {
    about:
      "ten minutes with two nodes and the simulated storage system, where one agent is dead for 90 s at a time while containers do not end, pods are deleted by force now and then, and the watches of controllers lag by a minute; a force comes after one minute instead of six; nothing else happens",
    options: {
      ...{ ...SELDOM, durationMs: 10 * MINUTES, everyMs: 3_000, loop: false, apps: 6, forceAfterMs: MINUTES },
      processes: CONTROLLERS,
      fields: {
        "add-app": SAN_APP,
        "delete-pod": { force: true },
        kill: { process: "node-1", forMs: 90_000 },
        link: { state: "lagging", forMs: MINUTES },
        stuck: { node: "node-1", forMs: 5 * MINUTES },
      },
      weights: { ...CALM, "delete-pod": 25, kill: 5, link: 7, stuck: 12 },
    },
  },
  timers: {
    about:
      "two nodes, where one is cut off for minutes, its containers do not end, pods come back to it, and controllers are killed; a force comes after one minute instead of six",
    options: {
      ...{ ...SELDOM, forceAfterMs: MINUTES },
      processes: CONTROLLERS,
      fields: {
        "delete-pod": { force: true, node: "node-1" },
        kill: { forMs: 20_000 },
        link: { process: "node-1", state: "cut", forMs: 2 * MINUTES },
        stuck: { node: "node-1", forMs: 5 * MINUTES },
      },
      weights: { ...QUIET, "delete-pod": 150, kill: 60, link: 40, stuck: 10 },
    },
  },
  unheard: {
    about:
      "two nodes, where pods are moved every few seconds, and every other request of controllers is lost, late or repeated; little else happens",
    options: {
      ...{ ...SELDOM, everyMs: 2_000 },
      processes: CONTROLLERS,
      fields: { ...IN_ORDER, lossy: { rate: 0.5, forMs: 2 * MINUTES } },
      weights: { ...QUIET, lossy: 30, "delete-pod": 400 },
    },
  },
  late: {
    about:
      "two nodes with the simulated storage system, where six apps are moved, and every fourth request of controllers is lost, late or repeated; nothing else happens",
    options: {
      ...{ ...SELDOM, everyMs: 1_500, loop: false, apps: 6 },
      processes: CONTROLLERS,
      fields: { ...IN_ORDER, "add-app": SAN_APP, lossy: { rate: 0.25, forMs: 40_000 } },
      weights: { ...CALM, lossy: 30, "delete-pod": 300 },
    },
  },
  "late-agents": {
    about: "as `late`, but it is the node agents whose requests are lost, late or repeated",
    options: {
      ...{ ...SELDOM, everyMs: 1_500, loop: false, apps: 6 },
      processes: AGENTS,
      fields: { ...IN_ORDER, "add-app": SAN_APP, lossy: { rate: 0.25, forMs: 40_000 } },
      weights: { ...CALM, lossy: 30, "delete-pod": 300 },
    },
  },
  hasty: {
    about:
      "two nodes with the simulated storage system, where the pod of one app is moved by force every second, and every third request of controllers is lost, late or repeated; nothing else happens",
    options: {
      ...{ ...SELDOM, everyMs: 1_000, loop: false, apps: 2 },
      processes: CONTROLLERS,
      fields: {
        "add-app": SAN_APP,
        "delete-pod": { app: "app0", force: true },
        lossy: { rate: 0.35, forMs: 4 * MINUTES },
      },
      weights: { ...CALM, lossy: 30, "delete-pod": 300 },
    },
  },
  forgetful: {
    about:
      "two nodes, where pods are deleted by force while their containers do not end, and more than half of all requests of controllers are lost, late or repeated; little else happens",
    options: {
      ...SELDOM,
      processes: CONTROLLERS,
      fields: {
        "delete-pod": { force: true },
        lossy: { rate: 0.6, forMs: 4 * MINUTES },
        stuck: { forMs: 5 * MINUTES },
      },
      weights: { ...QUIET, lossy: 20, stuck: 30, "delete-pod": 150 },
    },
  },
  leaders: {
    about:
      "two nodes, where pods are moved, a slow driver attaches, and controllers are killed, and frozen for half a minute; little else happens",
    options: {
      ...SELDOM,
      processes: CONTROLLERS,
      fields: {
        ...IN_ORDER,
        kill: { forMs: 20_000 },
        freeze: { forMs: 30_000 },
        "driver-faults": { machine: "infra", rate: 0.2, slowMs: 20_000, forMs: 2 * MINUTES },
      },
      weights: { ...QUIET, kill: 40, freeze: 40, "driver-faults": 20, "delete-pod": 200 },
    },
  },
  thawed: {
    about:
      "two nodes with the simulated storage system, where six apps are moved, controllers are frozen for 22 s, and their requests take up to 200 ms; nothing else happens",
    options: {
      ...{ ...SELDOM, everyMs: 1_500, loop: false, apps: 6 },
      processes: CONTROLLERS,
      fields: {
        ...IN_ORDER,
        "add-app": SAN_APP,
        freeze: { forMs: 22_000 },
        lossy: { rate: 0, forMs: 4 * MINUTES },
      },
      weights: { ...CALM, freeze: 25, lossy: 20, "delete-pod": 200 },
    },
  },
  agents: {
    about:
      "two nodes, where pods are moved, node agents are killed, a slow driver mounts, and claims and PersistentVolumes are replaced; little else happens",
    options: {
      ...SELDOM,
      processes: AGENTS,
      fields: {
        kill: { forMs: 3_000 },
        "driver-faults": { rate: 0.1, slowMs: 5_000, forMs: 2 * MINUTES },
        "replace-claim": { volumeAfterMs: MINUTES },
      },
      weights: {
        ...QUIET,
        ...{ kill: 100, "delete-pod": 100, "driver-faults": 20 },
        ...{ "replace-claim": 40, "replace-disk": 20, "rename-volume": 20 },
      },
    },
  },
  objects: {
    about:
      "two nodes, where pods are moved, and claims and PersistentVolumes are replaced and renamed; little else happens",
    options: {
      ...SELDOM,
      weights: { ...QUIET, "replace-claim": 40, "replace-disk": 60, "rename-volume": 60, "delete-pod": 150 },
    },
  },
  renamed: {
    about:
      "two nodes, where pods are moved, PersistentVolumes are renamed, a slow driver attaches and detaches, and controllers are killed; little else happens",
    options: {
      ...SELDOM,
      processes: CONTROLLERS,
      fields: {
        ...IN_ORDER,
        kill: { forMs: 5_000 },
        "rename-volume": { forMs: 1_000 },
        "driver-faults": { machine: "infra", rate: 0.2, slowMs: 30_000, forMs: 2 * MINUTES },
      },
      weights: { ...QUIET, kill: 60, "rename-volume": 80, "driver-faults": 20, "delete-pod": 150 },
    },
  },
  replaced: {
    about:
      "two nodes, where claims and PersistentVolumes are replaced under pods that stay, and one agent is cut off for minutes; a force comes after one minute instead of six",
    options: {
      ...{ ...SELDOM, forceAfterMs: MINUTES },
      fields: { link: { process: "node-1", state: "cut", forMs: 150_000 } },
      weights: { ...QUIET, link: 30, "replace-claim": 100, "replace-disk": 100, "delete-pod": 10 },
    },
  },
  unanswered: {
    about:
      "two nodes, where pods are moved, nodes get other ids, and every other call to attach or detach fails, some after they were carried out; little else happens",
    options: {
      ...{ ...SELDOM, everyMs: 2_500 },
      fields: { ...IN_ORDER, "driver-faults": { machine: "infra", rate: 0.9, slowMs: 2_000, forMs: 40_000 } },
      weights: { ...QUIET, "driver-faults": 30, "rename-node-id": 100, "delete-pod": 250 },
    },
  },
  "lost-answers": {
    about:
      "two nodes, where pods are moved, and every other call to mount fails, some after they were carried out; little else happens",
    options: {
      ...{ ...SELDOM, durationMs: 8 * MINUTES },
      fields: {
        ...IN_ORDER,
        "driver-faults": { machine: "node-1", rate: 0.9, slowMs: 2_000, forMs: MINUTES },
      },
      weights: { ...QUIET, "driver-faults": 30, "delete-pod": 200 },
    },
  },
  "slow-calls": {
    about:
      "two nodes with the simulated storage system, where pods are moved, calls to mount take up to 230 s, which is longer than they are waited for, and the attacher is often dead; nothing else happens",
    options: {
      ...{ ...SELDOM, durationMs: 8 * MINUTES, loop: false },
      fields: {
        ...IN_ORDER,
        "add-app": SAN_APP,
        "driver-faults": { machine: "node-1", rate: 0, slowMs: 230_000, forMs: 10_000 },
        kill: { process: "attacher", forMs: 100_000 },
      },
      weights: { ...CALM, "driver-faults": 12, kill: 6, "delete-pod": 60 },
    },
  },
  loop: {
    about:
      "two nodes with the loop driver, where pods are moved and processes are killed; little else happens",
    options: { ...SELDOM, loop: true, weights: { ...QUIET, kill: 60, "delete-pod": 200 } },
  },
  full: {
    about:
      "two nodes with the loop driver, whose pool is often full for a minute, while pods are moved and apps are removed; little else happens",
    options: {
      ...{ ...SELDOM, loop: true },
      fields: {
        "add-app": { storageClass: "loop", volumeAfterMs: undefined },
        "pool-full": { forMs: MINUTES },
      },
      weights: { ...QUIET, "pool-full": 40, "remove-app": 30, "add-app": 30, "delete-pod": 150 },
    },
  },
  raw: {
    about:
      "two nodes with the loop driver and raw volumes, which are snapshotted and cloned while pods write; little else happens",
    options: {
      ...{ ...SELDOM, loop: true },
      fields: { "add-app": { storageClass: "loop", volumeAfterMs: undefined, block: true } },
      weights: { ...QUIET, snapshot: 150, clone: 80, "delete-pod": 40 },
    },
  },
};
