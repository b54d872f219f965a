/** The text may come from anyone: the time of this pattern grows only with the length of the text. */
const MESSAGE_IDS = /<[!-;=?-~]{1,500}>/g;
const MESSAGE_ID = new RegExp(`^${MESSAGE_IDS.source}$`);

/** Whether a text, with its brackets, can be an entry of `References`. The id of a parent may come from anyone. */
export const isMessageId = (text: unknown): text is string => typeof text === 'string' && MESSAGE_ID.test(text);

/** The ids in a header field such as `References`. */
export const messageIdsIn = (text: string): readonly string[] => text.match(MESSAGE_IDS) ?? [];
