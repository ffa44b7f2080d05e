// Rate and latency over iodepth, for each pattern that was measured at several depths.

import { percentile, type Promised, type Unit } from '../document';
import { quantity } from '../format';
import { groupBy, patternOf, type Row } from '../rows';
import { limitLines, limitsInWords, limitsOf, near } from './limits';
import type { Drawing, Spec } from './panel';
import {
  colorOf,
  dashOf,
  linear,
  symbolOf,
  told,
  tooltip,
  upTo,
  valueAxis,
  whiskers,
  withError,
  xAxis,
} from './parts';

export interface Line {
  name: string;
  rows: Row[];
}

/** Groups rows of one pattern and place that differ in depth. */
export function depthLines(rows: Row[]): Line[] {
  const moved = rows.filter((row) => row.figure.direction !== 'sync' && row.depth > 0);
  const places = new Set(moved.map((row) => row.run.place)).size;
  const groups = groupBy(moved, (row) => {
    const workers = row.figure.workers > 1 ? ` × ${row.figure.workers} workers` : '';
    return `${places > 1 ? `${row.run.place}: ` : ''}${patternOf(row.figure)}${workers}`;
  });
  return [...groups]
    .filter(([, group]) => new Set(group.map((row) => row.depth)).size > 1)
    .map(([name, group]) => ({ name, rows: group.sort((a, b) => a.depth - b.depth) }));
}

interface Measure {
  id: string;
  title: string;
  unit: Unit;
  of: (row: Row) => { mean: number; error: number | null } | null;
}

const MEASURES: Measure[] = [
  { id: 'depth-iops', title: 'IOPS over depth', unit: 'iops', of: (row) => row.figure.iops },
  {
    id: 'depth-bandwidth',
    title: 'Bandwidth over depth',
    unit: 'bytes_per_s',
    of: (row) => row.figure.bytes_per_s,
  },
  { id: 'depth-latency', title: '99th percentile of latency over depth', unit: 'ns', of: tail },
];

function tail(row: Row) {
  const ns = percentile(row.figure.latency, 0.01);
  return ns === null ? null : { mean: ns, error: null };
}

export function depthSpecs(lines: Line[], promises: Promised[]): Spec[] {
  return MEASURES.map((measure) => ({
    id: measure.id,
    title: measure.title,
    draw: () => draw(lines, measure, promises),
  }));
}

function draw(lines: Line[], measure: Measure, promises: Promised[]): Drawing {
  const points = lines.map((line) =>
    line.rows.flatMap((row) => {
      const rate = measure.of(row);
      return rate === null ? [] : [{ depth: row.depth, rate }];
    }),
  );
  const depths = [...new Set(points.flat().map((point) => point.depth))].sort((a, b) => a - b);
  const drawn = lines.flatMap((line) => line.rows);
  const promised = limitsOf(
    promises,
    new Set(drawn.map((row) => row.run.place)),
    measure.unit,
    new Set(drawn.map((row) => row.figure.direction)),
  );
  const highest = Math.max(
    0,
    ...points.flat().map((point) => point.rate.mean + (point.rate.error ?? 0)),
  );
  const limits = near(promised, highest);
  const most = Math.max(highest, ...limits.map((limit) => limit.value));
  const best = lines.map((line, index) => {
    const top = Math.max(0, ...(points[index] ?? []).map((point) => point.rate.mean));
    return `${line.name}: up to ${quantity(top, measure.unit)}.`;
  });
  return {
    summary: best.join(' ') + limitsInWords(promised),
    legend: lines.map((line, index) => ({ name: line.name, color: index, dash: dashOf(index) })),
    height: 300,
    option: (theme, hidden) => ({
      grid: { left: 76, right: 24, top: 34, bottom: 52 },
      tooltip: tooltip(theme, (hits) => {
        const head = `depth ${hits[0]?.value[0]}`;
        return told(
          head,
          hits.map((hit) => ({
            color: hit.color,
            name: hit.seriesName,
            value: quantity(hit.value[1] ?? 0, measure.unit),
          })),
        );
      }),
      xAxis: xAxis(theme, 'I/Os in flight', {
        type: 'log',
        logBase: 2,
        min: Math.min(...depths),
        max: Math.max(...depths),
      }),
      yAxis: valueAxis(
        theme,
        '',
        measure.unit,
        limits.length > 0 ? upTo(measure.unit, most) : linear(measure.unit, most),
      ),
      series: [
        ...lines.flatMap((line, index) => {
          const shown = hidden.has(line.name) ? [] : (points[index] ?? []);
          const color = colorOf(theme, index);
          const errors = shown.flatMap(({ depth, rate }) =>
            rate.error === null ? [] : [[depth, rate.mean - rate.error, rate.mean + rate.error]],
          );
          return [
            {
              type: 'line',
              name: line.name,
              data: shown.map(({ depth, rate }) => [depth, rate.mean]),
              symbol: symbolOf(index),
              symbolSize: 8,
              lineStyle: { width: 2, type: dashOf(index) },
              color,
            },
            whiskers(color, errors),
          ];
        }),
        ...limitLines(theme, limits),
      ],
    }),
    table: () => ({
      caption: measure.title,
      head: ['I/Os in flight', ...lines.map((line) => line.name)],
      rows: depths.map((depth) => [
        depth,
        ...points.map((line) =>
          line
            .filter((point) => point.depth === depth)
            .map((point) => withError(point.rate, measure.unit))
            .join('; '),
        ),
      ]),
    }),
  };
}
