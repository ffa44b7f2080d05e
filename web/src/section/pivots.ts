// Figures of many results by two labels: a chart of grouped bars for each figure.

import { groupedBars, type GroupBar, type Groups } from '../chart/bars';
import { Panel } from '../chart/panel';
import { withInterval } from '../digits';
import type { Kept, Pivot, PivotCell, Unit } from '../document';
import { h, table } from '../dom';
import { capital, moment, quantity } from '../format';

/** Scale of the values. */
type Scale = 'linear' | 'logarithmic' | 'promised';

/** Bars of a group that differ in colour. With more rows than this, each row is a group. */
const SERIES = 6;
/** Bars that differ by more than this factor need a logarithmic scale. */
const FAR = 40;

export function pivotContent(pivots: Pivot[], kept: Kept[]): (Node | null)[] {
  const values = (pivot: Pivot) => pivot.cells.flat().flatMap((cell) => (cell ? [cell.value] : []));
  const isWide = pivots.some(
    (pivot) => Math.max(...values(pivot)) > FAR * Math.min(...values(pivot)),
  );
  const cells = pivots.flatMap((pivot) => pivot.cells.flat().flatMap((cell) => cell ?? []));
  const isPromised = cells.some((cell) => cell.promised !== null);
  const rates = pivots.filter((pivot) => pivot.unit !== 'count');
  const isUnknown = rates.some((pivot) =>
    pivot.cells.flat().some((cell) => cell?.between === null),
  );
  const [first] = pivots;
  if (!first) return [];
  let scale: Scale = isWide ? 'logarithmic' : 'linear';
  let byRow = first.rows.length > SERIES && first.columns.length <= SERIES;
  const panels = pivots.map(
    (pivot, number) =>
      new Panel({
        id: `pivot-${number}`,
        title: capital(pivot.title),
        hint: pivot.figure,
        draw: () => groupedBars(groupsOf(pivot, scale, byRow)),
      }),
  );
  const select = (
    label: string,
    choices: [string, string][],
    chosen: string,
    changed: (value: string) => void,
  ) => {
    const element = h(
      'select',
      {},
      ...choices.map(([key, text]) => h('option', { value: key, selected: key === chosen }, text)),
    );
    element.addEventListener('change', () => {
      changed(element.value);
      panels.forEach((panel) => panel.update());
    });
    return h('label', {}, `${label} `, element);
  };
  const scales: [string, string][] = [
    ['linear', 'linear'],
    ['logarithmic', 'logarithmic'],
    ...(isPromised ? ([['promised', 'per cent of the promised value']] as [string, string][]) : []),
  ];
  return [
    pivots.some((pivot) => pivot.simulated)
      ? h(
          'p',
          { class: 'lead' },
          h('strong', {}, 'Simulated devices: not figures of real storage.'),
        )
      : null,
    h(
      'p',
      {},
      (isPromised
        ? 'A line across a bar is the promised value for I/O of the measured size. '
        : '') +
        'Thin marks are 95 % confidence intervals.' +
        (isUnknown ? ' ~: interval not known.' : ''),
    ),
    h(
      'p',
      { class: 'choices' },
      select('Scale', scales, scale, (value) => (scale = value as Scale)),
      select(
        'a group of bars for each',
        [
          ['column', first.column_label],
          ['row', first.row_label],
        ],
        byRow ? 'row' : 'column',
        (value) => (byRow = value === 'row'),
      ),
    ),
    h('div', { class: 'grid wide' }, ...panels.map((panel) => panel.element)),
    isPromised ? h('h3', {}, 'Promised and measured') : null,
    isPromised ? promises(pivots) : null,
    isPromised ? products(pivots) : null,
    kept.length > 0 ? h('h3', {}, 'Results') : null,
    kept.length > 0 ? results(kept) : null,
  ];
}

function groupsOf(pivot: Pivot, scale: Scale, byRow: boolean): Groups {
  const categories = byRow ? pivot.rows : pivot.columns;
  const names = byRow ? pivot.columns : pivot.rows;
  const cell = (category: number, series: number) =>
    (byRow ? pivot.cells[category]?.[series] : pivot.cells[series]?.[category]) ?? null;
  return {
    title: pivot.figure,
    unit: scale === 'promised' ? 'percent' : pivot.unit,
    label: byRow ? pivot.row_label : pivot.column_label,
    categories,
    series: names.map((name, series) => ({
      name,
      bars: categories.map((_, category) => barOf(cell(category, series), scale, pivot.unit)),
    })),
    scale: scale === 'logarithmic' ? 'logarithmic' : 'linear',
  };
}

function barOf(cell: PivotCell | null, scale: Scale, unit: Unit): GroupBar | null {
  if (cell === null || (scale === 'promised' && cell.promised === null)) return null;
  const note = cell.note ?? '';
  const share = scale === 'promised' && cell.promised !== null ? 100 / cell.promised : 1;
  return {
    value: cell.value * share,
    text: barText(cell, share, scale === 'promised' ? 'percent' : unit),
    between: cell.between === null ? null : [cell.between[0] * share, cell.between[1] * share],
    limit: cell.promised === null ? null : cell.promised * share,
    note,
  };
}

/** A figure with its interval, as all screens print it. Counts are printed as they are. */
function barText(cell: PivotCell, share: number, unit: Unit): string {
  const half = longerHalf(cell);
  return unit === 'count'
    ? quantity(cell.value, unit)
    : withInterval(cell.value * share, half === null ? null : half * share, unit);
}

/** Half the interval, which need not be symmetric: the longer half. `null` if it is not known. */
function longerHalf({ value, between }: PivotCell): number | null {
  return between === null ? null : Math.max(value - between[0], between[1] - value);
}

/** Table of promises with their product, and whether the result keeps them. */
function promises(pivots: Pivot[]): HTMLElement {
  const rows = pivots.flatMap((pivot) =>
    pivot.rows.flatMap((row, r) =>
      pivot.columns.flatMap((column, c) => {
        const cell = pivot.cells[r]?.[c];
        if (!cell || cell.promised === null) return [];
        const share = `${Math.round((100 * cell.value) / cell.promised)} %`;
        const verdict =
          cell.kept === null ? 'above the promise' : cell.kept ? '✓ kept' : '✗ less than promised';
        return [
          [
            pivot.figure,
            row,
            column,
            withInterval(cell.value, longerHalf(cell), pivot.unit),
            quantity(cell.promised, pivot.unit),
            share,
            verdict,
          ],
        ];
      }),
    ),
  );
  const [first] = pivots;
  return table({
    caption: 'Measured and promised values, for I/O of the measured size',
    head: [
      'figure',
      first?.row_label ?? '',
      first?.column_label ?? '',
      'measured',
      'promised',
      'of it',
      'verdict',
    ],
    rows,
  });
}

/** The products with the sources of their promises. */
function products(pivots: Pivot[]): HTMLElement {
  const all = new Set(
    pivots.flatMap((pivot) => pivot.cells.flat().flatMap((cell) => cell?.product ?? [])),
  );
  return h('ul', { class: 'findings' }, ...[...all].map((text) => h('li', {}, text)));
}

/** The stored results behind the figures. */
function results(kept: Kept[]): HTMLElement {
  const labels = (one: Kept) => Object.entries(one.labels).map(([key, value]) => `${key}=${value}`);
  const all = table({
    caption: 'Results with these figures',
    head: ['result', 'kind', 'target', 'machine', 'labels', 'program', 'started'],
    rows: kept.map((one) => [
      one.id,
      one.kind,
      one.target,
      one.machine ?? '',
      labels(one).join(', '),
      one.program,
      moment(one.started_at_ms),
    ]),
  });
  all.classList.add('kept');
  return all;
}
