// Promised values beside measured ones.

import type { Promised, PromisedRow, Rate, Unit } from '../document';
import { quantity } from '../format';
import { groupBy } from '../rows';
import type { Drawing, Spec } from './panel';
import { bounds, withError } from './parts';
import type { Bars } from './plot';
import { linear, names } from './scales';

const UNITS: { [unit in Unit]: string } = {
  iops: 'IOPS',
  bytes_per_s: 'bandwidth',
  ns: 'latency',
  percent: 'share',
  count: 'number',
};

/** One chart per unit, since units share no scale. */
export function promiseSpecs(promised: Promised, number: number): Spec[] {
  return [...groupBy(promised.rows, (row) => row.unit)].map(([unit, rows]) => ({
    id: `promise-${number}-${unit}`,
    title: `Promised and measured ${UNITS[unit as Unit]}`,
    hint: `${promised.product}; measured on ${promised.place}`,
    draw: () => draw(rows, unit as Unit),
  }));
}

function draw(rows: PromisedRow[], unit: Unit): Drawing {
  const most = Math.max(
    0,
    ...rows.flatMap((row) => [row.promised, row.measured.mean + (row.measured.error ?? 0)]),
  );
  const bars = (name: string, slot: number, of: (row: PromisedRow) => Rate): Bars => ({
    kind: 'bars',
    name,
    slot,
    lying: true,
    bars: rows.map((row, at) => ({
      at,
      value: of(row).mean,
      between: bounds(of(row)),
      limit: null,
      predicted: false,
      text: quantity(of(row).mean, unit),
    })),
  });
  return {
    summary: rows
      .map(
        (row) =>
          `${row.what}: ${quantity(row.promised, unit)} promised, ${quantity(
            row.measured.mean,
            unit,
          )} measured, ${row.verdict}.`,
      )
      .join(' '),
    plot: {
      x: { title: '', scale: linear(unit, most), lines: true },
      strips: [
        {
          title: '',
          height: 52 * rows.length,
          y: {
            title: '',
            scale: names(
              rows.map((row) => row.what),
              true,
            ),
            lines: false,
          },
          marks: [
            bars('promised', 5, (row) => ({ mean: row.promised, error: null })),
            bars('measured', 0, (row) => row.measured),
          ],
        },
      ],
      labels: false,
    },
    stops: rows.map((row, y) => ({
      x: 0,
      y,
      head: row.what,
      lines: [
        { slot: 5, name: 'promised', value: quantity(row.promised, unit) },
        { slot: 0, name: 'measured', value: withError(row.measured, unit) },
      ],
    })),
    table: () => ({
      caption: 'Promised and measured',
      head: ['figure', 'promised', 'measured', 'verdict'],
      rows: rows.map((row) => [
        row.what,
        quantity(row.promised, unit),
        withError(row.measured, unit),
        row.verdict,
      ]),
    }),
  };
}
