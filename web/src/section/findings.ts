// Findings for and against the figures, with their evidence.

import type { Report } from '../document';
import { h } from '../dom';
import { bytes } from '../format';
import { groupBy } from '../rows';
import { verdictName } from './headline';

export function lead(report: Report): HTMLElement[] {
  return report.studies.map((study) =>
    h(
      'p',
      { class: 'lead' },
      report.studies.length > 1 ? h('strong', {}, `${study.target}: `) : null,
      study.sentence,
      ` Measured on ${bytes(study.working_set_bytes)}.`,
      study.interrupted ? h('strong', {}, ' It was interrupted: figures are missing.') : null,
    ),
  );
}

/** Lists each distinct finding with the runs that have it. */
export function findings(report: Report): HTMLElement | null {
  const said = [
    ...report.studies.flatMap((study) =>
      study.notes.map((note) => ({ kind: 'note', text: note, who: study.target })),
    ),
    ...report.runs.flatMap((run) => [
      ...run.failures.map((failure) => ({ kind: 'I/O error', text: failure, who: run.name })),
      ...run.verdicts.map((verdict) => ({
        kind: verdictName(verdict.kind),
        text: verdict.evidence,
        who: run.name,
      })),
    ]),
  ];
  if (said.length === 0) return null;
  const items = [...groupBy(said, (each) => `${each.kind}\n${each.text}`).values()].map((same) => {
    const [first] = same;
    const who = same.length > 4 ? `${same.length} runs` : same.map((each) => each.who).join('; ');
    return h(
      'li',
      {},
      h('strong', {}, first?.kind ?? ''),
      ' ',
      first?.text ?? '',
      h('small', {}, who),
    );
  });
  return h('ul', { class: 'findings' }, ...items);
}
