// The commands of docs/guides/node-agent.md, word for word: read from the page, run in a machine of their own as far as
// folders and ports go (a mount and a network namespace), so that what is typed there needs no other path here.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { scratch } from "../e2e/mooring.ts";
import { letGoOf, PROJECT } from "../e2e/up-world.ts";

const place = scratch();
afterAll(() => {
  letGoOf(place.path);
  place.remove();
});

const canRun =
  process.getuid?.() === 0 &&
  ["ip", "kubectl", "findmnt"].every((name) => spawnSync("which", [name]).status === 0);

/** The five code blocks of the section: processes, objects and the agent, a claim and its pod, and their end. */
function blocks(): readonly string[] {
  const page = readFileSync(join(PROJECT, "docs/guides/node-agent.md"), "utf8");
  const section = page.slice(page.indexOf("## A cluster of separate processes"));
  return [...section.slice(0, section.indexOf("\n## ", 3)).matchAll(/```\n([^]*?)```/g)].map(
    ([, text = ""]) => text,
  );
}

/** A command that stays in the foreground gets its own terminal: the page says so. */
function inTerminals(block: string): string {
  return block
    .replaceAll("\\\n", " ")
    .replace(
      /^mooring (apiserver|controller|driver|attacher|companions|node) .*$/gm,
      (line, name: string) => {
        const started =
          name === "apiserver" ? "until test -s data/admin.kubeconfig; do sleep 0.2; done" : "sleep 1";
        return `${line} 2>${name}.log &\n${started}`;
      },
    );
}

/** Repeats a look until it shows what it should, for 60 s at most. */
const until = (look: string, what: string) =>
  `for i in $(seq 300); do ${look} && break; sleep 0.2; done; ${look} || { echo "MISSING: ${what}"; exit 1; }`;

function story(): string {
  const [processes = "", agent = "", pod = "", end = ""] = blocks();
  return `
set -u
cd ${place.path}/work
for folder in /run/loop /var/lib/kubelet /var/lib/mooring-loop; do
  name=${place.path}/$(basename $folder); mkdir -p $name $folder; mount --bind $name $folder
done
ip link set lo up
trap 'kill $(jobs -p); wait' EXIT
${inTerminals(processes)}
${inTerminals(agent)}
${until("kubectl --kubeconfig data/admin.kubeconfig get csinode worker-1 -o jsonpath='{.spec.drivers[*].name}' | grep -q loop", "the driver on the node")}
${pod.replace(/^findmnt.*$/m, until("findmnt --list | grep kubernetes.io~csi", "the mount of the pod"))}
${end}
${until("! findmnt --list | grep -q kubernetes.io~csi", "the end of the mount")}
${until('test "$(kubectl --kubeconfig data/admin.kubeconfig get pv,volumeattachment -o name | wc -l)" = 0', "the end of the volume")}
echo TOLD
`;
}

test.skipIf(!canRun)(
  "a reader who types what the page says has a volume mounted, and gets rid of it",
  async () => {
    expect(blocks()).toHaveLength(4);
    mkdirSync(join(place.path, "work"));
    const file = join(place.path, "story.sh");
    writeFileSync(file, story());

    // A slave of this machine: a file system that others unmount meanwhile must not live on in here.
    const child = spawn("unshare", ["--mount", "--propagation", "slave", "--net", "bash", file], {
      env: { ...process.env, PATH: `${join(PROJECT, "bin")}:${process.env["PATH"] ?? ""}` },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (output += String(chunk)));
    await new Promise((resolve) => child.once("close", resolve));

    expect(output).toMatch(/web +data +pvc-/);
    expect(output).toMatch(/kubernetes\.io~csi/);
    expect(output).not.toContain("MISSING");
    expect(output).toMatch(/^TOLD$/m);
  },
);
