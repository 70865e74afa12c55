// How texts of peers are shown on pages.

// Characters that would hide or reverse a part of a text: those that Weirpool also escapes in a terminal.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;

/** Returns a text to show: as a text of the document, never as markup. */
export function shown(text) {
  return String(text).replace(UNSAFE, (unsafe) => `\\u${unsafe.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
