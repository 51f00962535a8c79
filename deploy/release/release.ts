export interface Release {
  readonly version: string;
  /** URL of the source repository. */
  readonly source: string;
  /** Registry and repository of the image. */
  readonly image: string;
  /** Digest of the image: `sha256:…`. */
  readonly digest: string;
}
