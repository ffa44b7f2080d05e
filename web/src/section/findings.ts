// Findings for and against the figures, with their evidence.

import type { Report, Run } from '../document';
import { folded, h } from '../dom';
import { groupBy } from '../rows';
import { verdictName } from './headline';

interface Finding {
  kind: string;
  text: string;
  who: string;
  /** Its target, if the report has several. */
  subject: string | null;
}

/**
 * A number, with commas between thousands. Digits that belong to a name, a version or an address,
 * such as `nvme0n1`, `osd.5` or `10.0.0.1`, are none. Equal to number_ranges.rs.
 */
const NUMBER = /(?<![\p{L}\p{N}_.,:/#-])\d+(?:,\d{3})*(?:\.\d+)?(?![.,:]?\d)/gu;
/** Stands for a number where texts are compared. No text contains it. */
const ANY_NUMBER = '\0';
/** Kind of the notes of studies, which are about a whole result. */
const NOTE = 'note';
/** Findings that are shown at once. The others are folded. */
const SHOWN = 4;

/** Each kind of finding in one sentence; the runs that have it are folded. */
export function findings(report: Report): HTMLElement | null {
  const isOne = new Set(report.runs.map((run) => run.subject)).size < 2;
  const nameOf = ({ name, subject }: Run) =>
    isOne ? { who: name, subject: null } : { who: `${subject}: ${name}`, subject };
  const said: Finding[] = [
    ...report.runs.flatMap((run) => [
      ...run.failures.map((text) => ({ kind: 'I/O error', text, ...nameOf(run) })),
      // A run that only prepared others has no figure to doubt.
      ...(run.preparation ? [] : run.verdicts).map((verdict) => ({
        kind: verdictName(verdict.kind),
        text: verdict.evidence,
        ...nameOf(run),
      })),
    ]),
    ...report.studies.flatMap(({ notes, subject }) =>
      notes.map((text) => ({ kind: NOTE, text, who: subject, subject })),
    ),
  ];
  if (said.length === 0) return null;
  // Findings that differ in their numbers only say the same.
  const alike = (text: string) => text.replace(NUMBER, ANY_NUMBER);
  const distinct = [...new Map(said.map((each) => [JSON.stringify(each), each])).values()];
  const groups = groupBy(distinct, (each) => `${each.kind}\n${alike(each.text)}`);
  const items = [...groups.values()].map(itemOf);
  const rest = items.slice(SHOWN);
  return h(
    'div',
    {},
    h('ul', { class: 'findings' }, ...items.slice(0, SHOWN)),
    rest.length > 0
      ? folded(`${rest.length} more finding${rest.length === 1 ? '' : 's'}`, () =>
          h('ul', { class: 'findings' }, ...rest),
        )
      : null,
  );
}

/** A text of findings that differ in their numbers: each number is the range of all. */
function rangesOf(texts: string[]): string {
  const numbers = texts.map((text) => text.match(NUMBER) ?? []);
  const valueOf = (number: string) => Number(number.replaceAll(',', ''));
  let index = -1;
  return (texts[0] ?? '').replace(NUMBER, () => {
    index += 1;
    const values = numbers.map((each) => each[index] ?? '');
    const sorted = values.sort((a, b) => valueOf(a) - valueOf(b));
    const [least, most] = [sorted[0], sorted.at(-1)];
    return least === most ? `${least}` : `${least} to ${most}`;
  });
}

/** Number of findings that say the same: `In 3 runs`, `In 3 runs of /srv/d`; `2 times` in one. */
function placesOf(same: Finding[], who: string[]): string {
  if (who.length === 1) return `${same.length} times`;
  const [subject, ...others] = new Set(same.map((each) => each.subject));
  const target = subject && others.length === 0 ? ` of ${subject}` : '';
  return `In ${who.length} ${same[0]?.kind === NOTE ? 'results' : 'runs'}${target}`;
}

function itemOf(same: Finding[]): HTMLElement {
  const [first] = same;
  const who = [...new Set(same.map((each) => each.who))];
  return h(
    'li',
    {},
    h('strong', {}, first?.kind ?? ''),
    ' ',
    rangesOf(same.map((each) => each.text)),
    who.length === 1 ? h('small', {}, who[0]) : null,
    same.length === 1
      ? null
      : folded(placesOf(same, who), () =>
          h('ul', {}, ...same.map((each) => h('li', {}, `${each.who}: ${each.text}`))),
        ),
  );
}
