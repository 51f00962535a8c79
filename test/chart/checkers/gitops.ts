import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import * as z from "zod";
import { GO_REMEDY, installTools } from "./go.ts";
import { once, succeed } from "./once.ts";

/** The Go module of Argo CD contains its CRDs; its code is not used. */
const ARGO = {
  module: "github.com/argoproj/argo-cd/v3@v3.5.7",
  sum: "h1:Xm1BF+I5OgDKUG3SDK49vn2/Y5AMyaNVko+/JT08gj0=",
  definition: "manifests/crds/application-crd.yaml",
};

const FLUX_TYPES = [
  "github.com/fluxcd/helm-controller/api/v2",
  "github.com/fluxcd/kustomize-controller/api/v1",
  "github.com/fluxcd/source-controller/api/v1",
];

const downloaded = z.object({ Dir: z.string(), Sum: z.literal(ARGO.sum) });
const judgement = z.object({ argo: z.unknown(), flux: z.string() });

export interface GitOps {
  /** Folder with the CRDs of Argo CD and Flux. */
  readonly definitions: string;
  /** Returns the health of an object in Argo CD, with this health check, and in Flux. */
  readonly judge: (object: object, lua: string) => Promise<z.output<typeof judgement>>;
}

export async function gitOps(): Promise<GitOps> {
  const dir = await once({
    name: "gitops",
    what: "the health checks of Argo CD and Flux",
    remedy: GO_REMEDY,
    files: ["gitops.ts", "gitops/go.mod", "gitops/go.sum", "gitops/apis.go", "gitops/health/main.go"],
    make: async (staging, out) => {
      const module = join(staging, "gitops");
      const definitions = join(out, "definitions");
      mkdirSync(definitions);
      await installTools(module, out);
      const paths = FLUX_TYPES.map((path) => `paths=${path}`);
      await succeed(join(out, "controller-gen"), ["crd", ...paths, `output:crd:dir=${definitions}`], module);
      const { Dir } = downloaded.parse(
        JSON.parse(await succeed("go", ["mod", "download", "-json", ARGO.module], staging)),
      );
      copyFileSync(join(Dir, ARGO.definition), join(definitions, "argoproj.io_applications.yaml"));
    },
  });
  return {
    definitions: join(dir, "definitions"),
    judge: async (object, lua) => {
      const input = JSON.stringify({ lua, object });
      const { code, stdout, stderr } = await run(join(dir, "health"), [], { env: environment, input });
      if (code !== 0) throw new Error(`the health check failed: ${stderr.trim()}`);
      return judgement.parse(JSON.parse(stdout));
    },
  };
}
