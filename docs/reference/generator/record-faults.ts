import type { DescribedRecord } from "./records.ts";

/** A fault of a record, and what it does. Tests: test/api/records.test.ts and test/integration/faults/objects-records.slow.test.ts. */
interface RecordFault {
  readonly fault: string;
  readonly api: string;
  readonly controller: string;
}

const NOT_READ = "does not read it";
const KEEPS_SIZES = "pipes keep their size, rollouts that have begun complete";

export const RECORD_FAULTS: Readonly<Record<DescribedRecord, readonly RecordFault[]>> = {
  organization: [
    {
      fault: "a key is malformed",
      api: "every operation with a key of this organization: 500",
      controller: `its services are Stalled with \`MalformedRecord\`: ${KEEPS_SIZES}`,
    },
    {
      fault: "`tier` names no tier",
      api: "PATCH of pipesCdcScaling: 500; everything else works",
      controller: `its services are Stalled with \`UnknownTier\`: ${KEEPS_SIZES}`,
    },
    {
      fault: "the ConfigMap is missing",
      api: "`GET /v1/organizations` returns an empty list; every other operation: 404",
      controller: `its services are Stalled with \`UnknownOrganization\`: ${KEEPS_SIZES}`,
    },
  ],
  service: [
    {
      fault: "a key is malformed",
      api: "operations of this service: 500; the list of services leaves it out; other services work",
      controller: `the service is Stalled with \`MalformedRecord\`: ${KEEPS_SIZES}`,
    },
    {
      fault: "the organization's label is missing or no UUID",
      api: "operations of this service: 404",
      controller: `the service is Stalled with \`MalformedRecord\`: ${KEEPS_SIZES}`,
    },
    {
      fault: "the label names an organization without a record",
      api: "operations of this service: 404",
      controller: `the service is Stalled with \`UnknownOrganization\`: ${KEEPS_SIZES}`,
    },
    {
      fault: "`namespace` is not one that the processes watch (value `pipes.namespaces`)",
      api: "operations of this service: 500",
      controller: "sees no pipe of the service",
    },
    {
      fault: "the ConfigMap is missing",
      api: "operations of this service: 404",
      controller: `the service is Stalled with \`UnknownService\`: ${KEEPS_SIZES}`,
    },
  ],
  "api-key": [
    {
      fault: "a key of the Secret is malformed, or the organization's label is missing or no UUID",
      api: "requests with this API key: 401; the list of keys leaves it out; other keys work",
      controller: NOT_READ,
    },
    {
      fault: "an address in `ipAccessList` is malformed",
      api: "requests with this API key: 403 from every address",
      controller: NOT_READ,
    },
  ],
  members: [
    {
      fault: "an entry is malformed",
      api: "removing this member: 500, and the entry does not count as an admin; other members can be removed",
      controller: NOT_READ,
    },
  ],
  backup: [
    {
      fault:
        "a key is malformed, or two contradict each other: a start time and a period, or a retention and a longer period",
      api: "GET and PATCH of backupConfiguration: 500; other operations of the service work",
      controller: NOT_READ,
    },
  ],
  "key-usage": [
    {
      fault: "an entry is malformed",
      api: "`usedAt` of this API key is absent; every operation works",
      controller: NOT_READ,
    },
  ],
  tiers: [
    {
      fault: "the file is malformed",
      api: "does not start, and prints a sentence with the path and the fault",
      controller: "does not start, likewise",
    },
  ],
};
