import type { HandlerRequest } from "../../src/kube/handler.ts";
import {
  createMemoryTransport,
  type MemoryHandler,
  type MemoryResponse,
} from "../../src/kube/transport/memory-transport.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { DRIVER, nodeName } from "../informer/names.ts";
import { uidOf } from "../informer/template.ts";
import { createFeed, type Feed } from "./feed.ts";
import {
  attachmentJson,
  claimJson,
  FIRST_VERSION,
  nodeJson,
  podJson,
  volumeJson,
  type Fleet,
  type NodeChange,
} from "./fleet.ts";

/**
 * An API server and a driver's attacher for a fleet, in this very process: no socket, no store. It knows the requests
 * that the controller sends and nothing else. A VolumeAttachment that is created is attached a turn later.
 */
export interface MemoryCluster {
  readonly transport: Transport;
  /** Everything but watches, `METHOD path` each, when it arrives. */
  onRequest: (line: string) => void;
  addPod(volume: number): void;
  deletePod(volume: number): void;
}

const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";
const NODES = "/api/v1/nodes";
const PODS = "/api/v1/pods";

interface Collection {
  readonly kind: string;
  readonly apiVersion: string;
  readonly count: number;
  readonly json: (index: number) => string;
}

export function createMemoryCluster(fleet: Fleet): MemoryCluster {
  const collections = collectionsOf(fleet);
  const feeds = new Map<string, Feed>();
  const nodes = new Map<string, number>();
  for (let node = 0; node < fleet.nodes; node++) nodes.set(nodeName(node), node);
  const changes = new Map<number, NodeChange>();
  const made = new Map<string, VolumeAttachment>();
  let version = FIRST_VERSION;

  function tell(path: string, type: string, json: string): void {
    feeds.get(path)?.push(`{"type":"${type}","object":${json}}\n`);
  }

  function watch(path: string, { kind, apiVersion, count, json }: Collection, request: HandlerRequest) {
    const bookmark = (annotations: object) =>
      `{"type":"BOOKMARK","object":${JSON.stringify({ kind, apiVersion, metadata: { resourceVersion: String(version), annotations } })}}\n`;
    function* initial(): Generator<string> {
      for (let index = 0; index < count; index++) yield `{"type":"ADDED","object":${json(index)}}\n`;
      yield bookmark({ "k8s.io/initial-events-end": "true" });
    }
    const feed = createFeed(request.path.includes("sendInitialEvents") ? initial() : [], {
      bookmark: () => bookmark({}),
      signal: request.signal,
    });
    feeds.set(path, feed);
    return answer(200, feed.lines);
  }

  function createAttachment(body: string): MemoryResponse {
    const sent = JSON.parse(body) as VolumeAttachment;
    const name = sent.metadata.name ?? "";
    const metadata = { name, uid: uidOf(++version, 41), resourceVersion: String(version) };
    const created: VolumeAttachment = { ...sent, metadata, status: { attached: false } };
    made.set(name, created);
    setImmediate(() => {
      tell(ATTACHMENTS, "ADDED", JSON.stringify(created));
      const attached = { ...metadata, resourceVersion: String(++version) };
      tell(
        ATTACHMENTS,
        "MODIFIED",
        JSON.stringify({ ...created, metadata: attached, status: { attached: true } }),
      );
    });
    return answer(201, JSON.stringify(created));
  }

  function deleteAttachment(name: string): MemoryResponse {
    const found = made.get(name);
    if (found === undefined) return notFound();
    made.delete(name);
    const metadata = { ...found.metadata, resourceVersion: String(++version) };
    tell(ATTACHMENTS, "DELETED", JSON.stringify({ ...found, metadata }));
    return answer(200, SUCCESS);
  }

  function patchNode(node: number, body: string): MemoryResponse {
    const { status } = JSON.parse(body) as {
      status: { volumesAttached: NodeChange["volumesAttached"] | null };
    };
    changes.set(node, { volumesAttached: status.volumesAttached ?? [], version: ++version });
    const json = nodeJson(fleet, node, changes.get(node));
    tell(NODES, "MODIFIED", json);
    return answer(200, json);
  }

  function respond(method: string, path: string, body: string): MemoryResponse {
    const [collection = "", name = ""] = splitPath(path);
    const node = collection === NODES ? nodes.get(name) : undefined;
    if (method === "POST" && path === ATTACHMENTS) return createAttachment(body);
    if (method === "DELETE" && collection === ATTACHMENTS) return deleteAttachment(name);
    if (node !== undefined && method === "PATCH") return patchNode(node, body);
    if (node !== undefined && method === "GET") return answer(200, nodeJson(fleet, node, changes.get(node)));
    return method === "POST" ? answer(201, body) : notFound();
  }

  const cluster = { onRequest: (_line: string): void => undefined };
  const handler: MemoryHandler = async (request) => {
    const [path = ""] = request.path.split("?");
    const collection = collections[path];
    if (collection !== undefined && request.path.includes("watch=true"))
      return watch(path, collection, request);
    cluster.onRequest(`${request.method} ${path}`);
    return respond(request.method, path, String(request.body));
  };
  return Object.assign(cluster, {
    transport: createMemoryTransport(handler),
    addPod: (volume: number) => tell(PODS, "ADDED", podJson(fleet, volume, ++version)),
    deletePod: (volume: number) => tell(PODS, "DELETED", podJson(fleet, volume, ++version)),
  });
}

function collectionsOf(fleet: Fleet): Readonly<Record<string, Collection>> {
  const { nodes, attached, spare } = fleet;
  const core = { apiVersion: "v1" };
  const storage = { apiVersion: "storage.k8s.io/v1" };
  const driver = { metadata: { name: DRIVER, uid: uidOf(0, 42), resourceVersion: "1" }, spec: {} };
  return {
    [PODS]: { ...core, kind: "Pod", count: attached, json: (index) => podJson(fleet, index) },
    [NODES]: { ...core, kind: "Node", count: nodes, json: (index) => nodeJson(fleet, index) },
    "/api/v1/persistentvolumeclaims": {
      ...core,
      kind: "PersistentVolumeClaim",
      count: attached + spare,
      json: claimJson,
    },
    "/api/v1/persistentvolumes": {
      ...core,
      kind: "PersistentVolume",
      count: attached + spare,
      json: volumeJson,
    },
    [ATTACHMENTS]: {
      ...storage,
      kind: "VolumeAttachment",
      count: attached,
      json: (index) => attachmentJson(fleet, index),
    },
    "/apis/storage.k8s.io/v1/csidrivers": {
      ...storage,
      kind: "CSIDriver",
      count: 1,
      json: () => JSON.stringify(driver),
    },
  };
}

/** Collection and name of an object; a subresource is left out. */
function splitPath(path: string): string[] {
  const collection = [ATTACHMENTS, NODES].find((prefix) => path.startsWith(`${prefix}/`));
  return collection === undefined ? [] : [collection, path.slice(collection.length + 1).split("/")[0] ?? ""];
}

const SUCCESS = JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Success" });

function answer(status: number, body: MemoryResponse["body"]): MemoryResponse {
  return { status, headers: { "content-type": "application/json" }, body };
}

function notFound(): MemoryResponse {
  return answer(404, JSON.stringify({ kind: "Status", status: "Failure", reason: "NotFound", code: 404 }));
}
