/** Limit of a request line with its headers. */
export const MAX_HEADER_BYTES = 16_384;
