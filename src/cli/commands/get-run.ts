import { withClusterView } from "../../processes/cluster-view.ts";
import { shutdownSignal } from "../../processes/shutdown.ts";
import { createCluster } from "../../views/cluster.ts";
import type { ClusterObjects } from "../../views/objects.ts";
import type { ListName } from "../output/list-names.ts";
import { LISTS } from "../output/lists.ts";
import { createLivePrinter, formatList } from "../output/printer.ts";
import { printLine } from "../output/streams.ts";
import { widthOf } from "../output/width.ts";
import { readReadingFlags } from "../flags/reading.ts";
import type { GetFlags } from "./get.ts";

/** `mooring get`: data on stdout, talk on stderr. */
export async function runGet(name: ListName, flags: GetFlags): Promise<void> {
  await withClusterView({ ...readReadingFlags(flags), kinds: LISTS[name].kinds }, async (view) => {
    const namespace = flags.allNamespaces === true ? undefined : view.namespace;
    const width = widthOf(process.stdout, process.env);
    const printing = { name, list: LISTS[name], format: flags.output, namespace, width };
    if (flags.watch !== true) {
      const objects = await view.read();
      warnOfUnread(objects);
      const { stdout, stderr } = formatList(printing, createCluster(objects, view.nowMs()));
      if (stdout !== "") printLine(process.stdout, stdout);
      if (stderr !== "") printLine(process.stderr, stderr);
      return;
    }
    const show = createLivePrinter(printing, (text) => printLine(process.stdout, text));
    let warned = false;
    await view.watch((objects) => {
      if (!warned) warnOfUnread(objects);
      warned = true;
      show(createCluster(objects, view.nowMs()));
    }, shutdownSignal());
  });
}

function warnOfUnread({ unread, notes }: ClusterObjects): void {
  for (const note of notes) printLine(process.stderr, `mooring: ${note}`);
  for (const { right, why } of unread) {
    printLine(process.stderr, `mooring: cannot ${right}: ${why}; what depends on it is left out`);
  }
}
