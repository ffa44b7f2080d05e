// Texts of results come from outside: names of jobs, files, hosts and labels can hold anything.

/** Control and invisible characters, except line feed and tab. */
const UNSEEN = new RegExp(
  String.raw`(?![\n\t])[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f` +
    String.raw`\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]`,
  'gu',
);

/** Longest name, and longest sentence, in characters. The end of a longer one is kept too. */
const NAME_CHARACTERS = 120;
const SENTENCE_CHARACTERS = 600;

/** Fields with names, which stand in legends, headings and table heads. */
const NAMES = new Set(
  (
    'name place title target job hostname what row_label column_label rows columns ' +
    'values id of group labels figure machine program kind'
  ).split(' '),
);

/** Shows characters that a reader could not see, such as marks that turn the text around. */
export function visible(text: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  // As in JSON, a character beyond U+FFFF is two escapes.
  return text.replace(UNSEEN, (unseen) => unseen.split('').map(escaped).join(''));
}

/** Shortens a text in the middle, since names mostly differ at the end. */
export function shortened(text: string, most = NAME_CHARACTERS): string {
  const characters = [...text];
  if (characters.length <= most) return text;
  const tail = Math.floor(most / 3);
  return `${characters.slice(0, most - tail - 1).join('')}…${characters.slice(-tail).join('')}`;
}

/** The document with harmless texts. Plans keep their length, since they are to be repeated. */
export function cleaned<T>(document: T): T {
  const walk = (value: unknown, most: number): unknown => {
    if (typeof value === 'string') return shortened(visible(value), most);
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map((one) => walk(one, most));
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [
        shortened(visible(key)),
        walk(one, key === 'plans' ? Infinity : limit(key, most)),
      ]),
    );
  };
  return walk(document, SENTENCE_CHARACTERS) as T;
}

function limit(key: string, around: number): number {
  if (around === Infinity || around === NAME_CHARACTERS) return around;
  return NAMES.has(key) ? NAME_CHARACTERS : SENTENCE_CHARACTERS;
}
