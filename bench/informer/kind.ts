/** Objects of one kind by their number, as JSON without `kind` and `apiVersion`: the form they have in a list. */
export interface Kind {
  /** Of the collection. */
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly count: number;
  json(index: number): string;
  /** Where one object is found, and which one a name means; absent where nobody gets a single one. */
  pathOf?(index: number): string;
  indexOf?(name: string): number;
}

/** How an object begins when it stands alone: in a watch event or as an answer. */
export function withType({ kind, apiVersion }: Kind, json: string): string {
  return `{"kind":"${kind}","apiVersion":"${apiVersion}",${json.slice(1)}`;
}
