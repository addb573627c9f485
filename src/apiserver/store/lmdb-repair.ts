import { hasStore, unusable, withPages } from "./lmdb-disk.ts";
import { salvage, type Salvaged } from "./lmdb-salvage.ts";
import { StoreError } from "./store.ts";

/** What is sound in a store that nobody is writing to; see `lmdb-salvage.ts`. Only reads. */
export async function salvageLmdbStore(directory: string): Promise<Salvaged> {
  try {
    if (!(await hasStore(directory))) {
      throw new StoreError("Unusable", `open ${directory}: there is no store in it`);
    }
    return await withPages(directory, salvage);
  } catch (error) {
    throw error instanceof StoreError ? error : unusable("open", directory, error);
  }
}
