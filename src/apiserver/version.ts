/** The Kubernetes release whose API this is: within one minor of kubectl 1.32, new enough for every sidecar. */
export const KUBERNETES_VERSION = { major: "1", minor: "33" };

/** The body of `/version`. */
export function versionInfo({ version, platform }: { version: string; platform: string }): object {
  const { major, minor } = KUBERNETES_VERSION;
  return {
    major,
    minor,
    gitVersion: `v${major}.${minor}.0+mooring-${version}`,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "",
    compiler: "",
    platform,
  };
}
