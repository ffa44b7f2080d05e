// Promised values beside measured ones.

import type { Promised, PromisedRow, Unit } from '../document';
import { quantity, tick } from '../format';
import { groupBy } from '../rows';
import type { Drawing, Spec } from './panel';
import { colorOf, dashOf, linear, roomForNames, told, tooltip, withError, xAxis } from './parts';

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
  const names = roomForNames(rows.map((row) => row.what));
  const most = Math.max(0, ...rows.flatMap((row) => [row.promised, row.measured.mean]));
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
    legend: [
      { name: 'promised', color: 7, dash: dashOf(0) },
      { name: 'measured', color: 0, dash: dashOf(0) },
    ],
    height: 50 + 56 * rows.length,
    option: (theme, hidden) => {
      const bars = (name: string, color: string, values: number[]) => ({
        type: 'bar',
        name,
        color,
        barMaxWidth: 18,
        data: hidden.has(name) ? [] : values,
        label: {
          show: true,
          position: 'right',
          distance: 8,
          color: theme.text,
          formatter: ({ value }: { value: number }) => quantity(value, unit),
        },
      });
      return {
        grid: { left: names, right: 84, top: 8, bottom: 30 },
        tooltip: tooltip(theme, (hits) =>
          told(
            hits[0]?.name ?? '',
            hits.map((hit) => ({
              color: hit.color,
              name: hit.seriesName,
              value: quantity(Number(hit.value), unit),
            })),
          ),
        ),
        xAxis: xAxis(theme, '', {
          min: 0,
          ...linear(unit, most),
          axisLabel: {
            color: theme.muted,
            hideOverlap: true,
            formatter: (value: number) => tick(value, unit),
          },
          splitLine: { show: true, lineStyle: { color: theme.faint } },
        }),
        yAxis: {
          type: 'category',
          inverse: true,
          data: rows.map((row) => row.what),
          axisLabel: { color: theme.text, width: names - 10, overflow: 'break' },
          axisTick: { show: false },
          axisLine: { lineStyle: { color: theme.line } },
        },
        series: [
          bars(
            'promised',
            colorOf(theme, 7),
            rows.map((row) => row.promised),
          ),
          bars(
            'measured',
            colorOf(theme, 0),
            rows.map((row) => row.measured.mean),
          ),
        ],
      };
    },
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
