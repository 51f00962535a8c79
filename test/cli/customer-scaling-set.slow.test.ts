import { describeScalingSet } from "./customer-scaling-set.ts";

describeScalingSet("on a terminal");
