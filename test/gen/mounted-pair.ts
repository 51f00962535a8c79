import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CertificatePair } from "./certificate.ts";
import { temporaryFolder } from "./kubeconfig.ts";

/** Where a test's certificate and key are, and how others take their place. */
export interface MountedPair {
  /** Path. */
  readonly cert: string;
  readonly key: string;
  mount(pair: CertificatePair): void;
}

/** A Secret as the kubelet mounts it: files behind a link to a folder, which is swapped for the next one. */
export function mountedPair(): MountedPair {
  const dir = temporaryFolder();
  let version = 0;
  symlinkSync(join("..data", "tls.crt"), join(dir, "tls.crt"));
  symlinkSync(join("..data", "tls.key"), join(dir, "tls.key"));
  return {
    cert: join(dir, "tls.crt"),
    key: join(dir, "tls.key"),
    mount({ cert, key }) {
      version += 1;
      const folder = `..${version}`;
      mkdirSync(join(dir, folder));
      writeFileSync(join(dir, folder, "tls.crt"), cert);
      writeFileSync(join(dir, folder, "tls.key"), key);
      symlinkSync(folder, join(dir, "..data_tmp"));
      renameSync(join(dir, "..data_tmp"), join(dir, "..data"));
    },
  };
}
