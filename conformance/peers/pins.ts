/**
 * The real programs, pinned: a version and the checksum of its source, which has to be the one that the module registry
 * hands out. Nothing of them is in this repository; `build.ts` makes them in a cache outside of it.
 */
export interface Pin {
  readonly module: string;
  readonly version: string;
  /** As go.sum has it; a source with another one is not built. */
  readonly sum: string;
  /** The packages that become programs, each named after its last folder unless `as` says otherwise. */
  readonly commands: readonly string[];
  readonly as?: string;
  /** Packages whose tests become a program of their own: `test/e2e` is `e2e.test`. */
  readonly tests?: readonly string[];
  /** Linker variables that get the version: some programs refuse to run without one. */
  readonly versionIn: readonly string[];
}

const KUBERNETES = {
  module: "k8s.io/kubernetes",
  commands: [
    "cmd/kube-apiserver",
    "cmd/kube-controller-manager",
    "cmd/kube-scheduler",
    "cmd/kubelet",
    "cmd/kubectl",
  ],
  tests: ["test/e2e"],
  versionIn: ["k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"],
} as const;

/** The newest minor of the module registry, and the one four before it. */
export const KUBERNETES_PINS: readonly [Pin, ...Pin[]] = [
  { ...KUBERNETES, version: "v1.36.3", sum: "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=" },
  { ...KUBERNETES, version: "v1.32.5", sum: "h1:PmYLXqBh09l3ez5xA8OqzVTYmjsF12+b8DSQel6phtQ=" },
];

export const OTHER_PINS: readonly Pin[] = [
  {
    module: "go.etcd.io/etcd/server/v3",
    version: "v3.6.8",
    sum: "h1:U2strdSEy1U8qcSzRIdkYpvOPtBy/9i/IfaaCI9flZ4=",
    commands: [""],
    as: "etcd",
    versionIn: [],
  },
  {
    module: "github.com/kubernetes-csi/external-provisioner/v5",
    version: "v5.1.0",
    sum: "h1:pUwwaJNxBt3BRbZBYqNRvGYnOGNCicBOeLAAayroTwI=",
    commands: ["cmd/csi-provisioner"],
    versionIn: ["main.version"],
  },
  {
    module: "github.com/kubernetes-csi/csi-driver-host-path",
    version: "v1.7.2",
    sum: "h1:Q/xVHE0+JvgExSZGW8BuY36y+eHRUfhyR+bRfAdHoCY=",
    commands: ["cmd/hostpathplugin"],
    versionIn: ["main.version"],
  },
  {
    module: "github.com/kubernetes-csi/csi-test/v5",
    version: "v5.6.0",
    sum: "h1:fQgB/CRoqTEAtlHwfD0Y785LjQJ/OxNGUE7AHw68VLg=",
    commands: ["cmd/csi-sanity"],
    versionIn: [],
  },
];

/** Everything of a pin that can be built, programs first. */
export function targetsOf({ commands, tests = [] }: Pin): readonly string[] {
  return [...commands, ...tests];
}

export function isTest({ tests = [] }: Pin, target: string): boolean {
  return tests.includes(target);
}

export function targetName(pin: Pin, target: string): string {
  const name = pin.as ?? target.slice(target.lastIndexOf("/") + 1);
  return isTest(pin, target) ? `${name}.test` : name;
}
