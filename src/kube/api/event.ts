import type { Event as EventV1 } from "kubernetes-types/core/v1.js";
import type { KubeObject, Resource } from "../object.ts";

/** The core/v1 Event, which is what upstream's volume controllers write and `kubectl describe` reads. */
export type KubeEvent = EventV1 & KubeObject;

export const events: Resource<KubeEvent> = {
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
};
