// Promised values beside measured ones.

import type { Promised, PromisedRow, Rate, Unit } from '../document';
import { knownDigits } from '../digits';
import { quantity } from '../format';
import { groupBy } from '../rows';
import type { Drawing, Spec } from './panel';
import { bounds, withError } from './parts';
import { STYLES, type Bars } from './plot';
import { linear, names } from './scales';

const UNITS: { [unit in Unit]: string } = {
  iops: 'IOPS',
  bytes_per_s: 'bandwidth',
  ns: 'latency',
  percent: 'share',
  count: 'number',
};

/** One chart per unit, since units share no scale. `slot` is the colour of the target. */
export function promiseSpecs(promised: Promised, number: number, slot: number): Spec[] {
  return [...groupBy(promised.rows, (row) => row.unit)].map(([unit, rows]) => ({
    id: `promise-${number}-${unit}`,
    title: `Promised and measured ${UNITS[unit as Unit]}`,
    hint: `${promised.product}; measured on ${promised.place}`,
    draw: () => draw(rows, unit as Unit, slot),
  }));
}

/** The promised bars have the last colour, or the one before if that is the target's. */
function draw(rows: PromisedRow[], unit: Unit, slot: number): Drawing {
  const limit = slot % STYLES === STYLES - 1 ? STYLES - 2 : STYLES - 1;
  const most = Math.max(
    0,
    ...rows.flatMap((row) => [row.promised, row.measured.mean + (row.measured.error ?? 0)]),
  );
  const measured = ({ measured: { mean, error } }: PromisedRow) => knownDigits(mean, error, unit);
  const promised = (row: PromisedRow) => quantity(row.promised, unit);
  const bars = (
    name: string,
    slot: number,
    of: (row: PromisedRow) => Rate,
    text: (row: PromisedRow) => string,
  ): Bars => ({
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
      text: text(row),
    })),
  });
  return {
    summary: rows
      .map(
        (row) =>
          `${row.what}: ${promised(row)} promised, ${measured(row)} measured, ${row.verdict}.`,
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
            bars('promised', limit, (row) => ({ mean: row.promised, error: null }), promised),
            bars('measured', slot, (row) => row.measured, measured),
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
        { slot: limit, name: 'promised', value: promised(row) },
        { slot, name: 'measured', value: withError(row.measured, unit) },
      ],
    })),
    table: () => ({
      caption: 'Promised and measured',
      head: ['figure', 'promised', 'measured', 'verdict'],
      rows: rows.map((row) => [
        row.what,
        promised(row),
        withError(row.measured, unit),
        row.verdict,
      ]),
    }),
  };
}
