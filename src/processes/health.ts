import { text, type EndpointResponse, type EndpointRoutes } from "./endpoint.ts";

/** One thing that can be wrong with a process. */
export interface HealthCheck {
  readonly name: string;
  /** In a few words; undefined while all is well. Asked at every probe, so it has to be cheap. */
  problem(): string | undefined;
}

export interface HealthChecks {
  /** A failure here means: end this process and start another. */
  readonly live: readonly HealthCheck[];
  /** A failure here means: it works, but cannot do its task yet. */
  readonly ready: readonly HealthCheck[];
}

const PING: HealthCheck = { name: "ping", problem: () => undefined };

/**
 * `/livez`, `/readyz` and the old `/healthz` (which asks what livez asks), as Kubernetes components have them: 200 and
 * `ok`, or 500 and a line a check; `?verbose` for the lines in any case, `?exclude=NAME` to leave one out, and every
 * check under a path of its own.
 */
export function healthRoutes({ live, ready }: HealthChecks): EndpointRoutes {
  return {
    ...routesFor("healthz", [PING, ...live]),
    ...routesFor("livez", [PING, ...live]),
    ...routesFor("readyz", [PING, ...ready]),
  };
}

function routesFor(page: string, checks: readonly HealthCheck[]): EndpointRoutes {
  return {
    [`/${page}`]: (query) => answer(page, checks, query),
    ...Object.fromEntries(
      checks.map((check) => [
        `/${page}/${check.name}`,
        (query: URLSearchParams) => answer(page, [check], query),
      ]),
    ),
  };
}

function answer(page: string, checks: readonly HealthCheck[], query: URLSearchParams): EndpointResponse {
  const excluded = new Set(query.getAll("exclude"));
  const results = checks.map((check) => ({
    name: check.name,
    excluded: excluded.has(check.name),
    problem: excluded.has(check.name) ? undefined : problemOf(check),
  }));
  const passed = results.every(({ problem }) => problem === undefined);
  if (passed && !query.has("verbose")) return text(200, "ok");
  const lines = results.map(({ name, problem, excluded }) => {
    if (excluded) return `[+]${name} excluded: ok`;
    return problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`;
  });
  return text(passed ? 200 : 500, `${lines.join("\n")}\n${page} check ${passed ? "passed" : "failed"}\n`);
}

/** A check that cannot answer has not passed. */
function problemOf(check: HealthCheck): string | undefined {
  try {
    return check.problem();
  } catch (error) {
    return `the check itself failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}
