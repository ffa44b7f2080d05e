// Findings for and against the figures, with their evidence.

import type { Report } from '../document';
import { folded, h } from '../dom';
import { groupBy } from '../rows';
import { verdictName } from './headline';

interface Finding {
  kind: string;
  text: string;
  who: string;
}

/** Findings that are shown at once. The others are folded. */
const SHOWN = 4;

/** Each kind of finding in one sentence; the runs that have it are folded. */
export function findings(report: Report): HTMLElement | null {
  const isOne = new Set(report.runs.map((run) => run.subject)).size < 2;
  const said: Finding[] = [
    ...report.runs.flatMap((run) => [
      ...run.failures.map((failure) => ({ kind: 'I/O error', text: failure, who: run.name })),
      ...run.verdicts.map((verdict) => ({
        kind: verdictName(verdict.kind),
        text: verdict.evidence,
        who: isOne ? run.name : `${run.subject}: ${run.name}`,
      })),
    ]),
    ...report.studies.flatMap((study) =>
      study.notes.map((note) => ({ kind: 'note', text: note, who: study.subject })),
    ),
  ];
  if (said.length === 0) return null;
  // Findings that differ in their numbers only say the same.
  const groups = groupBy(said, (each) => `${each.kind}\n${each.text.replace(/[\d.,]+/g, '#')}`);
  const items = [...groups.values()].map(itemOf);
  const rest = items.slice(SHOWN);
  return h(
    'div',
    {},
    h('ul', { class: 'findings' }, ...items.slice(0, SHOWN)),
    rest.length > 0
      ? folded(`${rest.length} more findings`, () => h('ul', { class: 'findings' }, ...rest))
      : null,
  );
}

function itemOf(same: Finding[]): HTMLElement {
  const [first] = same;
  const who = [...new Set(same.map((each) => each.who))];
  return h(
    'li',
    {},
    h('strong', {}, first?.kind ?? ''),
    ' ',
    first?.text ?? '',
    who.length === 1
      ? h('small', {}, who[0])
      : folded(`The same of ${who.length} runs`, () =>
          h('ul', {}, ...same.map((each) => h('li', {}, `${each.who}: ${each.text}`))),
        ),
  );
}
