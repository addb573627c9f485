/** What `mooring get` can list, in the order its help shows; apart from the lists, which take time to load. */
export const LIST_NAMES = ["volumes", "attachments", "nodes", "drivers", "operations"] as const;
export type ListName = (typeof LIST_NAMES)[number];
