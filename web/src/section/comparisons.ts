// The table that compares the same workloads of several subjects.

import type { Rate, Report } from '../document';
import { h } from '../dom';
import { groupBy, isLargeFigure, type Row } from '../rows';
import { subjectsOf } from '../subjects';

/** Most rows and columns of the table. */
const SUBJECTS = 16;
const WORKLOADS = 8;
/** Dates and times, which stay whole in the names of rows. */
const MOMENT = /(\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d)/;

/** A row for each subject and a column for each workload; `null` if there is nothing to compare. */
export function comparisonTable(report: Report, rows: Row[]): HTMLElement | null {
  const subjects = subjectsOf(report).filter((name) =>
    rows.some((row) => row.run.subject === name),
  );
  const workloads = [...groupBy(rows, (row) => `${row.phase}\n${row.workload}`)]
    .map(([, group]) => group)
    .filter((group) => new Set(group.map((row) => row.run.subject)).size > 1)
    .slice(0, WORKLOADS);
  if (subjects.length < 2 || subjects.length > SUBJECTS || workloads.length === 0) return null;
  const rowOf = (group: Row[], subject: string) =>
    group.find((row) => row.run.subject === subject);
  // The table shows one row of each subject, so only these are compared.
  const columns = workloads.map((group) =>
    subjects.flatMap((subject) => rowOf(group, subject) ?? []),
  );
  const head = columns.map(([row]) => {
    return h(
      'th',
      { scope: 'col' },
      row?.phase ?? '',
      h('small', {}, row && isLargeFigure(row.figure) ? 'bandwidth, p99' : 'IOPS, p99'),
    );
  });
  const lines = subjects.map((subject) => {
    const cells = columns.map((column) => {
      const row = rowOf(column, subject);
      return row ? cellOf(row, column) : h('td', {}, '–');
    });
    return h('tr', {}, h('th', { scope: 'row' }, ...wholeMoments(subject)), ...cells);
  });
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Comparison of targets' },
    h(
      'table',
      { class: 'compared' },
      h(
        'caption',
        {},
        h(
          'span',
          {},
          'Bold: the highest rate of its column, if its 95 % interval is above all others. ' +
            'Bars are shares of the highest rate. ~: interval not known.',
        ),
      ),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Target'), ...head)),
      h('tbody', {}, ...lines),
    ),
  );
}

/** The cell of a row. `column` has all rows that its column shows. */
function cellOf(row: Row, column: Row[]): HTMLElement {
  const rates = column.map(rateOf);
  const most = Math.max(...rates.map((rate) => rate.mean));
  const share = most > 0 ? (100 * rateOf(row).mean) / most : 0;
  const { shown } = row.figure;
  const [text, half] = isLargeFigure(row.figure)
    ? [shown.bandwidth, shown.bandwidth_half]
    : [shown.iops, shown.iops_half];
  const others = column.filter((each) => each !== row).map(rateOf);
  const cell = h(
    'td',
    {},
    isAbove(rateOf(row), others) ? h('strong', {}, text) : text,
    half === null ? null : h('span', { class: 'half' }, ` ${half}`),
    h('small', {}, shown.percentiles[1] ?? '–'),
  );
  cell.style.setProperty('--share', `${Math.max(1, share).toFixed(1)}%`);
  return cell;
}

function rateOf({ figure }: Row): Rate {
  return isLargeFigure(figure) ? figure.bytes_per_s : figure.iops;
}

/** The name of a row, in which no date or time is broken into lines. */
function wholeMoments(subject: string): (Node | string)[] {
  return subject
    .split(MOMENT)
    .map((part) => (MOMENT.test(part) ? h('span', { class: 'whole' }, part) : part));
}

/** Whether the interval of a rate is above those of all others. All intervals must be known. */
function isAbove(rate: Rate, others: Rate[]): boolean {
  const low = ({ mean, error }: Rate) => (error === null ? -Infinity : mean - error);
  const high = ({ mean, error }: Rate) => (error === null ? Infinity : mean + error);
  return others.every((other) => low(rate) > high(other));
}
