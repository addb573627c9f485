import type { TransportRequest } from "../kube/transport/transport.ts";

/** How a test calls what the API calls otherwise. */
export interface Labels {
  /** `vol-1@n1` of the VolumeAttachment with this hashed name. */
  attachment(name: string): string;
  /** `vol-1` of `kubernetes.io/csi/csi.example.com^vol-1`. */
  volume(name: string): string;
}

interface Path {
  readonly plural: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/**
 * A request as a line to read in a test: `POST va vol-1@n1`, `PATCH node n1 [vol-1]`, `GET node n1`. Lists and
 * watches have none.
 */
export function toRequestLine(request: TransportRequest, labels: Labels): string | undefined {
  const path = parsePath(request.path);
  const { method } = request;
  if (path.plural === "volumeattachments") {
    const name = path.name ?? postedName(request);
    return name === undefined ? undefined : `${method} va ${labels.attachment(name)}`;
  }
  if (path.plural === "nodes" && path.name !== undefined) {
    const what = method === "PATCH" ? ` ${attachedIn(request.body ?? "", labels)}` : "";
    return `${method} node ${path.name}${what}`;
  }
  if (method === "GET") return undefined;
  const name = path.name ?? postedName(request) ?? "";
  if (path.plural === "events") return `${method} event`;
  return `${method} ${path.plural} ${name}`;
}

function parsePath(path: string): Path {
  const parts = (path.split("?", 1)[0] ?? "").split("/").slice(1).map(decodeURIComponent);
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  const [plural = "", name, subresource] = rest[0] === "namespaces" && rest.length > 2 ? rest.slice(2) : rest;
  return { plural, name, subresource };
}

function postedName({ method, body }: TransportRequest): string | undefined {
  if (method !== "POST") return undefined;
  return (JSON.parse(body ?? "{}") as { metadata?: { name?: string } }).metadata?.name;
}

/** `[vol-1 vol-2]`, with device paths where there are any; the patch itself if it does not set the list. */
function attachedIn(body: string, labels: Labels): string {
  const patch = JSON.parse(body) as { status?: { volumesAttached?: unknown } };
  const attached = patch.status?.volumesAttached;
  if (attached === null) return "[]";
  if (!Array.isArray(attached)) return body;
  const items = (attached as { name: string; devicePath: string }[]).map(
    ({ name, devicePath }) => labels.volume(name) + (devicePath === "" ? "" : `=${devicePath}`),
  );
  return `[${items.sort().join(" ")}]`;
}
