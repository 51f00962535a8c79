import { findBinaries } from "../../binaries/find.ts";
import { environment } from "../../environment.ts";
import { openPaths } from "../../paths.ts";
import { terminalProgress } from "../../progress.ts";

/** Finds the programs in a separate process, for tests with several processes. */
const paths = openPaths(environment);
const { dir } = await findBinaries({ env: environment, paths, progress: terminalProgress() });
console.log(dir);
