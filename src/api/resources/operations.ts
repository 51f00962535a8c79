import type { Router } from "express";
import type { Operation } from "../openapi/operation.ts";
import {
  type BackupDeps,
  backupRouter,
  getBackupConfiguration,
  updateBackupConfiguration,
} from "./backup/routes.ts";
import { type KeysDeps, keysRouter, listKeys } from "./keys/routes.ts";
import { deleteMember, listMembers, type MembersDeps, membersRouter } from "./members/routes.ts";
import { listOrganizations, type OrganizationsDeps, organizationsRouter } from "./organizations/routes.ts";
import {
  type BoostDeps,
  boostRouter,
  deleteBoost,
  getBoost,
  updateBoost,
} from "./pipe-scaling/boost-routes.ts";
import { getPipeScalingHistory } from "./pipe-scaling/history.ts";
import { getPipeScalingLimits } from "./pipe-scaling/limits.ts";
import {
  getPipeScaling,
  getPipeScalingProgress,
  type PipeScalingDeps,
  pipeScalingRouter,
  updatePipeScaling,
} from "./pipe-scaling/routes.ts";
import {
  getOrganizationMetrics,
  getServiceMetrics,
  type PrometheusDeps,
  prometheusRouter,
} from "./prometheus/routes.ts";
import { listServices, type ServicesDeps, servicesRouter } from "./services/routes.ts";

/** Every operation of the API. The OpenAPI document and the tables of the tests are derived from this list. */
export const OPERATIONS: readonly Operation[] = [
  listOrganizations,
  listKeys,
  listServices,
  listMembers,
  deleteMember,
  getBackupConfiguration,
  updateBackupConfiguration,
  getPipeScaling,
  updatePipeScaling,
  getPipeScalingProgress,
  getPipeScalingLimits,
  getPipeScalingHistory,
  getBoost,
  updateBoost,
  deleteBoost,
  getOrganizationMetrics,
  getServiceMetrics,
];

export type ResourceDeps = OrganizationsDeps &
  KeysDeps &
  ServicesDeps &
  MembersDeps &
  BackupDeps &
  PrometheusDeps &
  PipeScalingDeps &
  BoostDeps;

/** The routers of all resources. Express tries them in turn, so the one that clients poll comes first. */
export function resourceRouters(deps: ResourceDeps): Router[] {
  return [
    pipeScalingRouter(deps),
    organizationsRouter(deps),
    keysRouter(deps),
    servicesRouter(deps),
    membersRouter(deps),
    backupRouter(deps),
    boostRouter(deps),
    prometheusRouter(deps),
  ];
}
