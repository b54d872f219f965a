const MESSAGE_ID = /^<[!-;=?-~]{1,500}>$/;

/** Whether a text, with its brackets, can be an entry of `References`. Anyone can have written the id of a parent. */
export const isMessageId = (text: unknown): text is string => typeof text === 'string' && MESSAGE_ID.test(text);
