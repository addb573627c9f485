// Every mutant, and the plans they are run with.
import { attacherMutants } from "./attacher.mjs";
import { controllerMutants } from "./controller.mjs";
import { nodeMutants } from "./node.mjs";
import { reasonMutants } from "./reasons.mjs";

export const mutants = [...controllerMutants, ...nodeMutants, ...attacherMutants, ...reasonMutants];

const MINUTES = 60_000;
const ALONE = { "foreign-attachment": 0 };
/** Left out: a Node that is made again is believed before its agent has reported what it uses, with any mutant or none. */
const NODES_STAY = { "delete-node": 0 };

const DENSE = { durationMs: 5 * MINUTES, everyMs: 4_000 };

/** Options of `runSeed`, and what they mean. Weights are how often acts of a kind are drawn. */
export const profiles = {
  usual: {
    about: "five minutes with three nodes and four apps; Nodes are not deleted",
    options: { durationMs: 5 * MINUTES, weights: NODES_STAY },
  },
  alone: {
    about: "as `usual`, but nobody makes VolumeAttachments by hand",
    options: { durationMs: 5 * MINUTES, weights: { ...NODES_STAY, ...ALONE } },
  },
  hands: {
    about: "as `usual`; VolumeAttachments are made by hand ten times as often",
    options: { durationMs: 5 * MINUTES, weights: { ...NODES_STAY, "foreign-attachment": 20 } },
  },
  crowd: {
    about: "as `hands` on two nodes, with acts three times as dense",
    options: { ...DENSE, nodes: 2, weights: { ...NODES_STAY, "foreign-attachment": 20, "delete-pod": 30 } },
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
      ...{ ...DENSE, nodes: 2, forceAfterMs: MINUTES },
      weights: { ...NODES_STAY, ...ALONE, link: 30, stuck: 10, "delete-pod": 40 },
    },
  },
  stuck: {
    about:
      "as `silent`, but containers are stuck ten times as often, processes seldom cut off, and more pods are deleted",
    options: {
      ...{ ...DENSE, nodes: 2, forceAfterMs: MINUTES },
      weights: {
        ...NODES_STAY,
        ...ALONE,
        ...{ link: 3, lossy: 2, stuck: 20, "power-off": 1, "delete-pod": 60 },
      },
    },
  },
  lossy: {
    about: "as `alone` on two nodes, with acts three times as dense; bad networks are five times as frequent",
    options: {
      ...{ ...DENSE, nodes: 2 },
      weights: { ...NODES_STAY, ...ALONE, lossy: 30, link: 12, "delete-pod": 40 },
    },
  },
  restarts: {
    about:
      "as `alone` on two nodes, with acts three times as dense; kills are five times, cut links and failing drivers three times as frequent",
    options: {
      ...{ ...DENSE, nodes: 2 },
      weights: { ...NODES_STAY, ...ALONE, ...{ kill: 40, link: 20, "driver-faults": 15, "delete-pod": 40 } },
    },
  },
  drivers: {
    about:
      "as `alone`, with acts three times as dense; failing drivers are five times, new node ids ten times as frequent",
    options: {
      ...DENSE,
      weights: { ...NODES_STAY, ...ALONE, "driver-faults": 25, "rename-node-id": 10, "delete-pod": 40 },
    },
  },
  frozen: {
    about: "as `alone`, with acts three times as dense; processes are frozen eight times as often",
    options: { ...DENSE, weights: { ...NODES_STAY, ...ALONE, freeze: 40, "delete-pod": 40 } },
  },
};
