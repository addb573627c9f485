import { KubeError } from "../../kube/errors.ts";
import { withClusterView } from "../../processes/cluster-view.ts";
import { createCluster, type Cluster } from "../../views/cluster.ts";
import { explain, type Subject } from "../../views/explain.ts";
import type { ObjectKind } from "../../views/objects.ts";
import { readReadingFlags } from "../flags/reading.ts";
import { explanationToJson } from "../output/explanation-json.ts";
import { formatExplanation } from "../output/explanation.ts";
import { printLine } from "../output/streams.ts";
import { styleFor } from "../output/style.ts";
import type { WhyFlags, WhySubject } from "./why.ts";

/** `mooring why`: an answer is success, also when it says that something is wrong. */
export async function runWhy({ kind, name }: WhySubject, flags: WhyFlags): Promise<void> {
  await withClusterView(readReadingFlags(flags), async (view) => {
    const cluster = createCluster(await view.read(), view.nowMs());
    const subject = { kind, name, namespace: kind === "pod" || kind === "pvc" ? view.namespace : "" };
    const explanation = explain(cluster, subject);
    if (explanation === undefined) throw notFound(cluster, subject, view.server);
    const text =
      flags.output === "json"
        ? JSON.stringify(explanationToJson(explanation), null, 2)
        : formatExplanation(explanation, cluster.nowMs, styleFor(process.stdout, process.env));
    printLine(process.stdout, text);
  });
}

const READ_AS: Readonly<Record<Subject["kind"], ObjectKind>> = {
  pod: "pods",
  pvc: "claims",
  pv: "volumes",
  node: "nodes",
};

function notFound(cluster: Cluster, { kind, name, namespace }: Subject, server: string): KubeError {
  const where = namespace === "" ? "" : ` in namespace ${namespace}`;
  const unread = cluster.objects.unread.find((item) => item.kind === READ_AS[kind]);
  if (unread !== undefined && !cluster.knows(READ_AS[kind], namespace)) {
    return new KubeError(
      "Forbidden",
      `explaining ${kind}/${name}${where}: cannot ${unread.right}: ${unread.why}; ask for that right`,
    );
  }
  const hint = namespace === "" ? "" : "; give its namespace with -n";
  return new KubeError(
    "NotFound",
    `explaining ${kind}/${name}${where}: it does not exist on ${server}${hint}`,
  );
}
