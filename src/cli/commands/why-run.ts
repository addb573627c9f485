import { KubeError } from "../../kube/errors.ts";
import { withClusterView, type ClusterView } from "../../processes/cluster-view.ts";
import { createCluster, type Cluster } from "../../views/cluster.ts";
import { explain } from "../../views/explain.ts";
import { OBJECT_KINDS } from "../../views/objects.ts";
import { stuckIn } from "../../views/stuck.ts";
import { kindsFor, SUBJECTS, type Subject } from "../../views/subjects.ts";
import { readReadingFlags } from "../flags/reading.ts";
import { explanationToJson } from "../output/explanation-json.ts";
import { formatExplanation, type Layout } from "../output/explanation.ts";
import { printLine } from "../output/streams.ts";
import { formatStuck, stuckToJson } from "../output/stuck.ts";
import { styleFor } from "../output/style.ts";
import { widthOf } from "../output/width.ts";
import type { WhyFlags, WhyQuestion } from "./why.ts";

/** `mooring why`: an answer is success, also when it says that something is wrong. */
export async function runWhy(question: WhyQuestion, flags: WhyFlags): Promise<void> {
  const kinds = question === "everything" ? OBJECT_KINDS : kindsFor(question.kind);
  await withClusterView({ ...readReadingFlags(flags), kinds }, async (view) => {
    const cluster = createCluster(await view.read(), view.nowMs(), view.commands);
    const text = question === "everything" ? tellStuck(cluster, flags) : tell(cluster, view, question, flags);
    printLine(process.stdout, text);
  });
}

function tellStuck(cluster: Cluster, { output }: WhyFlags): string {
  const stuck = stuckIn(cluster);
  if (output === "json") return JSON.stringify(stuckToJson(stuck), null, 2);
  return formatStuck(stuck, cluster.nowMs, styleFor(process.stdout, process.env), layoutFor(output));
}

function tell(
  cluster: Cluster,
  view: ClusterView,
  { kind, name }: Exclude<WhyQuestion, string>,
  { output }: WhyFlags,
): string {
  const subject = { kind, name, namespace: SUBJECTS[kind].namespaced ? view.namespace : "" };
  const explanation = explain(cluster, subject);
  if (explanation === undefined) throw notFound(cluster, subject, view.server);
  if (output === "json") return JSON.stringify(explanationToJson(explanation), null, 2);
  return formatExplanation(
    explanation,
    cluster.nowMs,
    styleFor(process.stdout, process.env),
    layoutFor(output),
  );
}

function layoutFor(output: WhyFlags["output"]): Layout {
  return output === "wide" ? {} : { width: widthOf(process.stdout, process.env) };
}

function notFound(cluster: Cluster, { kind, name, namespace }: Subject, server: string): KubeError {
  const { read } = SUBJECTS[kind];
  const where = namespace === "" ? "" : ` in namespace ${namespace}`;
  const asked = `explaining ${kind}/${name}${where}`;
  const unread = cluster.objects.unread.find((item) => item.kind === read);
  if (unread !== undefined && !cluster.knows(read, namespace)) {
    return new KubeError("Forbidden", `${asked}: cannot ${unread.right}: ${unread.why}; ask for that right`);
  }
  if (cluster.objects.notServed.includes(read)) {
    const hint = kind === "volumesnapshot" ? "; the CRDs of snapshot.storage.k8s.io are not installed" : "";
    return new KubeError("NotFound", `${asked}: ${server} does not serve this kind${hint}`);
  }
  const elsewhere = cluster.objects[read].filter(({ metadata }) => metadata.name === name);
  const [found] = elsewhere;
  const hint =
    namespace === ""
      ? ""
      : found === undefined
        ? "; give its namespace with -n"
        : `; there is one in namespace ${found.metadata.namespace ?? ""}: give -n ${found.metadata.namespace ?? ""}`;
  return new KubeError("NotFound", `${asked}: it does not exist on ${server}${hint}`);
}
