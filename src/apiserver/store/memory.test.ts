import { describeStore } from "../../../test/contract/store.ts";
import { createMemoryStore } from "./memory.ts";

describeStore("memory", (clock, options) => createMemoryStore({ clock }, options));
