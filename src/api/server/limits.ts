/** Limit of the target of a request with the names and values of its headers, which is what Node counts. */
export const MAX_HEADER_BYTES = 16_384;

/** Every header takes memory, however short it is: 8,000 empty ones take 350 KB. */
export const MAX_HEADERS = 128;

/** Seconds until the last header has arrived, and until the last byte of the body has. */
export const HEADERS_TIMEOUT_S = 10;
export const REQUEST_TIMEOUT_S = 30;
