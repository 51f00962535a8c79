import { describeWatches } from "./customer-scaling-watch.ts";

describeWatches("in a pipe");
