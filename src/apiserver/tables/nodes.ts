import { isJsonObject } from "../../kube/patch/json.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { conditionStatus, flagAt, listAt, textAt } from "./fields.ts";
import { ageColumn, column, createPrinter, nameColumn, wideColumn } from "./printer.ts";

export const nodePrinter = createPrinter([
  nameColumn,
  column("Status", "Whether the node is ready, and whether new pods may come to it", statusOf),
  column("Roles", "The roles its labels give it", rolesOf),
  ageColumn,
  column("Version", "Version of its kubelet", (node) => nodeInfo(node, "kubeletVersion")),
  wideColumn("Internal-IP", "Its first address inside the cluster", (node) => address(node, "InternalIP")),
  wideColumn("External-IP", "Its first address outside the cluster", (node) => address(node, "ExternalIP")),
  wideColumn("OS-Image", "Its operating system", (node) => nodeInfo(node, "osImage") || "<unknown>"),
  wideColumn("Kernel-Version", "Its kernel", (node) => nodeInfo(node, "kernelVersion") || "<unknown>"),
  wideColumn(
    "Container-Runtime",
    "What runs its containers",
    (node) => nodeInfo(node, "containerRuntimeVersion") || "<unknown>",
  ),
]);

function statusOf(node: ApiObject): string {
  const ready = conditionStatus(node, "Ready");
  const status = ready === undefined ? "Unknown" : ready === "True" ? "Ready" : "NotReady";
  return flagAt(node, "spec", "unschedulable") === true ? `${status},SchedulingDisabled` : status;
}

const ROLE_PREFIX = "node-role.kubernetes.io/";
const ROLE_LABEL = "kubernetes.io/role";

function rolesOf(node: ApiObject): string {
  const labels = fieldAt(node, "metadata", "labels");
  const roles = Object.entries(isJsonObject(labels) ? labels : {}).map(([key, value]) => {
    if (key.startsWith(ROLE_PREFIX)) return key.slice(ROLE_PREFIX.length);
    return key === ROLE_LABEL && typeof value === "string" ? value : "";
  });
  return [...new Set(roles.filter((role) => role !== ""))].sort().join(",") || "<none>";
}

function nodeInfo(node: ApiObject, field: string): string {
  return textAt(node, "status", "nodeInfo", field);
}

function address(node: ApiObject, type: string): string {
  const found = listAt(node, "status", "addresses").find((item) => textAt(item, "type") === type);
  return textAt(found, "address") || "<none>";
}
