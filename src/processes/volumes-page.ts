import type { ReportFilter, VolumesReport } from "../attach-detach/report.ts";
import { failure, json, localOnly, type EndpointRoute } from "./endpoint.ts";

/** What `/debug/volumes` needs of the process: the controller of the present term, and who leads. */
export interface VolumesSource {
  /** Undefined while this process does not lead. */
  report(filter: ReportFilter): VolumesReport | undefined;
  leader(): { readonly identity: string; readonly holder: string | undefined };
  now(): Date;
}

const LIMIT_DEFAULT = 1_000;
/** 10,000 volumes are 5 MB and block the process for 50 ms; a cluster may have a million. */
const LIMIT_MAX = 10_000;

const PARAMETERS = ["volume", "node", "pod", "waiting", "limit", "pretty"];

/** `/debug/volumes?volume=&node=&pod=&waiting=true&limit=&pretty`. */
export function volumesRoute(source: VolumesSource): EndpointRoute {
  return localOnly((query) => {
    const asked = parseQuery(query);
    if (typeof asked === "string") return failure(400, "BadRequest", asked);
    const { filter, limit, pretty } = asked;
    return json(describe(source, filter, limit), { pretty });
  });
}

/** One more than wanted is asked for: that it is there tells that some were left out. */
function describe(source: VolumesSource, filter: ReportFilter, limit: number): object {
  const idle: VolumesReport = {
    time: source.now().toISOString(),
    active: false,
    volumes: [],
    unresolved: [],
  };
  const { volumes, unresolved, ...report } = source.report({ ...filter, limit: limit + 1 }) ?? idle;
  const leftOut = volumes.length > limit || unresolved.length > limit;
  return {
    ...report,
    ...source.leader(),
    ...(leftOut && { leftOut: `more than ${limit} match; narrow it with volume, node, pod or waiting` }),
    volumes: volumes.slice(0, limit),
    unresolved: unresolved.slice(0, limit),
  };
}

interface Asked {
  readonly filter: ReportFilter;
  readonly limit: number;
  readonly pretty: boolean;
}

function parseQuery(query: URLSearchParams): Asked | string {
  for (const name of new Set(query.keys())) {
    if (!PARAMETERS.includes(name)) return `parameter ${name}: not one of ${PARAMETERS.join(", ")}`;
    if (query.getAll(name).length > 1) return `parameter ${name}: given more than once`;
  }
  const limit = parseLimit(query.get("limit"));
  if (limit === undefined) return `parameter limit: give a whole number from 1 to ${LIMIT_MAX}`;
  const [waitingOnly, pretty] = [parseFlag(query.get("waiting")), parseFlag(query.get("pretty"))];
  if (waitingOnly === undefined) return "parameter waiting: give true or false";
  if (pretty === undefined) return "parameter pretty: give true or false";
  const [volume, node, pod] = ["volume", "node", "pod"].map((name) => query.get(name));
  if (pod && !/^[^/]+\/[^/]+$/.test(pod)) return "parameter pod: give NAMESPACE/NAME";
  const filter = { ...(volume && { volume }), ...(node && { node }), ...(pod && { pod }), waitingOnly };
  return { filter, limit, pretty };
}

function parseLimit(text: string | null): number | undefined {
  if (text === null) return LIMIT_DEFAULT;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= LIMIT_MAX ? value : undefined;
}

/** `?waiting` alone means yes. */
function parseFlag(text: string | null): boolean | undefined {
  if (text === null || text === "false") return false;
  return text === "" || text === "true" ? true : undefined;
}
