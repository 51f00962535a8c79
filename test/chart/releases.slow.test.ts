import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { afterAll, beforeAll, describe } from "vitest";
import { AuditLog } from "./audit.ts";
import { autoscalingSuite } from "./releases/autoscaling.ts";
import { removeReleases } from "./releases/cluster.ts";
import { installSuite } from "./releases/install.ts";
import { preflightSuite } from "./releases/preflight.ts";
import { schedulingSuite } from "./releases/scheduling.ts";
import { upgradeSuite } from "./releases/upgrade.ts";

/*
 * A release sees the CRD and the other releases of its cluster, so these suites have a cluster of their own, one suite
 * after the other.
 */

const audit = new AuditLog();
let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2, apiServerArgs: audit.apiServerArgs });
});
afterAll(async () => {
  await cluster?.stop();
  audit[Symbol.dispose]();
});

describe.each([preflightSuite, autoscalingSuite, schedulingSuite, upgradeSuite, installSuite])(
  "in an empty cluster",
  (suite) => {
    afterAll(() => removeReleases(cluster));
    suite({
      audit,
      get cluster() {
        return cluster;
      },
    });
  },
);
