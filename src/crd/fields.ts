import * as z from "zod";

// Lengths in characters: they bound the status that a stolen token of the controller can write.

/** The maximum for names of Kubernetes objects. */
export const MAX_NAME_LENGTH = 253;
/** For a message about one pipe. */
export const MAX_MESSAGE_LENGTH = 1024;
/** For a condition, which can contain messages and names of several pipes. */
export const MAX_CONDITION_MESSAGE_LENGTH = 8192;
/** For a size, an identifier or a time. */
export const MAX_WORD_LENGTH = 128;

export const name = z.string().max(MAX_NAME_LENGTH);
export const message = z.string().max(MAX_MESSAGE_LENGTH);
export const word = z.string().max(MAX_WORD_LENGTH);
export const dateTime = word.meta({ format: "date-time" });
