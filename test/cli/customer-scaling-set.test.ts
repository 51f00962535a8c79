import { describeScalingSet } from "./customer-scaling-set.ts";

describeScalingSet("in a pipe");
