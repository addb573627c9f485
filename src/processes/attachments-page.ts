import type { AttachmentReport, ReportFilter } from "../attacher/report.ts";
import { failure, json, localOnly, type EndpointRoute } from "./endpoint.ts";

/** One driver of this process. */
export interface ReportingDriver {
  readonly driver: string;
  /** Undefined while this process does not lead for the driver. */
  report(filter: ReportFilter): readonly AttachmentReport[] | undefined;
  /** Undefined where nobody is elected. */
  leader(): { readonly identity: string; readonly holder: string | undefined } | undefined;
}

const LIMIT_DEFAULT = 1_000;
/** 10,000 attachments are 5 MB; a cluster may have a million. */
const LIMIT_MAX = 10_000;

const PARAMETERS = ["attachment", "volume", "node", "waiting", "limit", "pretty"] as const;

/** `/debug/attachments?attachment=&volume=&node=&waiting=true&limit=&pretty`; `volume` is a PersistentVolume. */
export function attachmentsRoute(drivers: readonly ReportingDriver[], now: () => Date): EndpointRoute {
  return localOnly((query) => {
    const asked = parseQuery(query);
    if (typeof asked === "string") return failure(400, "BadRequest", asked);
    return json(describe(drivers, asked, now()), { pretty: asked.pretty });
  });
}

/** One more than wanted is asked for: that it is there tells that some were left out. */
function describe(drivers: readonly ReportingDriver[], { filter, limit }: Asked, now: Date): object {
  const reports = drivers.map((source) => {
    const attachments = source.report({ ...filter, limit: limit + 1 });
    const { driver } = source;
    return { driver, active: attachments !== undefined, ...source.leader(), attachments: attachments ?? [] };
  });
  const all = reports.flatMap(({ attachments }) => attachments);
  return {
    time: now.toISOString(),
    active: reports.every(({ active }) => active),
    drivers: reports.map(({ attachments: _, ...driver }) => driver),
    ...(all.length > limit && {
      leftOut: `more than ${limit} match; narrow it with attachment, volume, node or waiting`,
    }),
    attachments: all.slice(0, limit),
  };
}

interface Asked {
  readonly filter: ReportFilter;
  readonly limit: number;
  readonly pretty: boolean;
}

function parseQuery(query: URLSearchParams): Asked | string {
  for (const name of new Set(query.keys())) {
    if (!(PARAMETERS as readonly string[]).includes(name)) {
      return `parameter ${name}: not one of ${PARAMETERS.join(", ")}`;
    }
    if (query.getAll(name).length > 1) return `parameter ${name}: given more than once`;
  }
  const limit = parseLimit(query.get("limit"));
  if (limit === undefined) return `parameter limit: give a whole number from 1 to ${LIMIT_MAX}`;
  const [waitingOnly, pretty] = [parseFlag(query.get("waiting")), parseFlag(query.get("pretty"))];
  if (waitingOnly === undefined) return "parameter waiting: give true or false";
  if (pretty === undefined) return "parameter pretty: give true or false";
  const [attachment, volume, node] = [query.get("attachment"), query.get("volume"), query.get("node")];
  const filter = {
    ...(attachment && { attachment }),
    ...(volume && { volume }),
    ...(node && { node }),
    waitingOnly,
  };
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
