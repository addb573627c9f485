import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  NodeServiceCapability_RPC_Type as NodeRpc,
} from "../csi/gen/csi_pb.ts";

/** What a version of the storage system's driver may lack, by names that stand in plans. */

const CONTROLLER = {
  LIST_VOLUMES: ControllerRpc.LIST_VOLUMES,
  LIST_VOLUMES_PUBLISHED_NODES: ControllerRpc.LIST_VOLUMES_PUBLISHED_NODES,
  EXPAND_VOLUME: ControllerRpc.EXPAND_VOLUME,
  PUBLISH_READONLY: ControllerRpc.PUBLISH_READONLY,
  CREATE_DELETE_SNAPSHOT: ControllerRpc.CREATE_DELETE_SNAPSHOT,
  LIST_SNAPSHOTS: ControllerRpc.LIST_SNAPSHOTS,
  CLONE_VOLUME: ControllerRpc.CLONE_VOLUME,
  SINGLE_NODE_MULTI_WRITER: ControllerRpc.SINGLE_NODE_MULTI_WRITER,
} as const;

const NODE = {
  STAGE_UNSTAGE_VOLUME: NodeRpc.STAGE_UNSTAGE_VOLUME,
  EXPAND_VOLUME: NodeRpc.EXPAND_VOLUME,
  SINGLE_NODE_MULTI_WRITER: NodeRpc.SINGLE_NODE_MULTI_WRITER,
} as const;

export type ControllerAbility = keyof typeof CONTROLLER;
export type NodeAbility = keyof typeof NODE;

export const CONTROLLER_ABILITIES = Object.keys(CONTROLLER) as readonly ControllerAbility[];
export const NODE_ABILITIES = Object.keys(NODE) as readonly NodeAbility[];

const rpc = <T>(type: T) => ({ type: { case: "rpc" as const, value: { type } } });

/** Answers of ControllerGetCapabilities and NodeGetCapabilities. */
export function controllerCapabilities(lacks: ReadonlySet<ControllerAbility>) {
  const always = [ControllerRpc.CREATE_DELETE_VOLUME, ControllerRpc.PUBLISH_UNPUBLISH_VOLUME];
  const others = CONTROLLER_ABILITIES.filter((ability) => !lacks.has(ability));
  return { capabilities: [...always, ...others.map((ability) => CONTROLLER[ability])].map(rpc) };
}

export function nodeCapabilities(lacks: ReadonlySet<NodeAbility>) {
  const has = NODE_ABILITIES.filter((ability) => !lacks.has(ability));
  return { capabilities: has.map((ability) => NODE[ability]).map(rpc) };
}
