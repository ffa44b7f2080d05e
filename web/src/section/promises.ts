// Promises of vendors beside measured figures.

import { grid, Panel } from '../chart/panel';
import { withError } from '../chart/parts';
import { promiseSpecs } from '../chart/promise';
import type { Promised, Report } from '../document';
import { h, table } from '../dom';
import { quantity } from '../format';
import { subjectsOf } from '../subjects';
import { listed } from './sweeps';

/** A table and charts of each promise. */
export function promiseContent(report: Report): (Node | null)[] {
  const subjects = subjectsOf(report);
  return report.promises.flatMap((promised, number): (Node | null)[] => {
    // The colour of the target in all charts.
    const run = report.runs.find((each) => each.place === promised.place && !each.of_grid);
    const slot = Math.max(0, subjects.indexOf(run?.subject ?? ''));
    const panels = promiseSpecs(promised, number, slot).map((spec) => new Panel(spec));
    return [
      promised.sentence === null
        ? null
        : h('p', { class: 'lead' }, h('strong', {}, `${promised.place}: `), promised.sentence),
      tableOf(promised),
      listed(promised.conditions),
      grid(panels),
    ];
  });
}

function tableOf(promised: Promised): HTMLElement {
  const rows = promised.rows.map((row) => [
    row.what,
    quantity(row.promised, row.unit),
    withError(row.measured, row.unit),
    `${row.kept === null ? '' : row.kept ? '✓ ' : '✗ '}${row.verdict}`,
  ]);
  const against = promised.sentence === null ? 'the fastest of each kind on ' : '';
  const caption = `${promised.product}, compared with ${against}${promised.place}. Source: ${
    promised.source
  }`;
  return table({ caption, head: ['figure', 'promised', 'measured', 'verdict'], rows });
}
