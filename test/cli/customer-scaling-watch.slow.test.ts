import { describeWatches } from "./customer-scaling-watch.ts";

describeWatches("on a terminal");
