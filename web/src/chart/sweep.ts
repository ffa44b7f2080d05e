// Curves of a sweep over one of its axes, with bands of confidence; what was not measured but predicted is hollow.

import type { Sweep } from '../document';
import { quantity } from '../format';
import { combinations, has, named, titled, type Measure, type Point } from '../grid';
import type { Drawing } from './panel';
import { colorOf, CONFIDENCE, dashOf, linear, logarithmic, told, tooltip, valueAxis, withError, xAxis, type Option } from './parts';
import type { Theme } from '../theme';

interface Line {
  name: string;
  points: { at: number; mean: number; error: number | null; measured: boolean }[];
}

/** Curves over `axis`, one for each combination of `others`. */
export function curves(sweep: Sweep, points: Point[], axis: number, others: number[], measure: Measure): Drawing {
  const over = sweep.axes[axis];
  const values = over?.values ?? [];
  const numbers = values.every((value) => /^[1-9]\d*$/.test(value));
  const at = (value: string) => (numbers ? Number(value) : values.indexOf(value));
  const lines: Line[] = combinations(points, others).map((combination) => ({
    name: combination.length === 0 ? measure.title : combination.map((value, index) => named(sweep.axes[others[index] ?? 0], value)).join(' '),
    points: points
      .filter((point) => has(point, others, combination))
      .flatMap((point) => {
        const rate = measure.of(point.cell);
        return rate === null ? [] : [{ at: at(point.values[axis] ?? ''), ...rate, measured: point.cell.basis === 'measured' }];
      })
      .sort((a, b) => a.at - b.at),
  }));
  const all = lines.flatMap((line) => line.points);
  const most = Math.max(0, ...all.map((point) => point.mean + (point.error ?? 0)));
  const head = (index: number) => (numbers ? `${over?.name} ${index}` : (values[index] ?? ''));
  const latencies = measure.unit === 'ns';
  return {
    summary: lines.map((line) => `${line.name}: from ${told1(line, measure, Math.min)} to ${told1(line, measure, Math.max)}.`).join(' '),
    legend: lines.map((line, index) => ({ name: line.name, color: index, dash: dashOf(index) })),
    height: 300,
    option: (theme, hidden) => ({
      grid: { left: 76, right: 24, top: 20, bottom: 52 },
      tooltip: tooltip(theme, (hits) => {
        const entries = hits.flatMap((hit) => {
          const point = lines.find((line) => line.name === hit.seriesName)?.points[hit.dataIndex];
          return point ? [{ color: hit.color, name: hit.seriesName, value: said(point, measure) }] : [];
        });
        const first = lines.find((line) => line.name === hits[0]?.seriesName)?.points[hits[0]?.dataIndex ?? 0];
        return told(head(first?.at ?? 0), entries);
      }),
      xAxis: numbers
        ? xAxis(theme, over ? titled(over) : '', { type: 'log', logBase: 2, min: Math.min(...values.map(Number)), max: Math.max(...values.map(Number)) })
        : xAxis(theme, over ? titled(over) : '', { type: 'category', data: values, boundaryGap: false }),
      yAxis: valueAxis(theme, '', measure.unit, latencies && all.length > 0 ? logarithmic(all.map((point) => point.mean)) : linear(measure.unit, most)),
      series: lines.flatMap((line, index) => (hidden.has(line.name) ? [] : drawn(theme, line, index))),
    }),
    table: () => ({
      caption: `${measure.title} over ${over?.name}`,
      head: [over?.name ?? '', ...lines.map((line) => line.name)],
      rows: values.map((value) => [
        value,
        ...lines.map((line) => {
          const point = line.points.find((each) => each.at === at(value));
          return point ? said(point, measure) : '';
        }),
      ]),
    }),
  };
}

function said(point: Line['points'][number], measure: Measure): string {
  return `${withError(point, measure.unit)}${point.measured ? '' : ' (predicted)'}`;
}

function told1(line: Line, measure: Measure, of: (...values: number[]) => number): string {
  return line.points.length === 0 ? 'nothing' : quantity(of(...line.points.map((point) => point.mean)), measure.unit);
}

/** The line, and the band below it. */
function drawn(theme: Theme, line: Line, index: number): Option[] {
  const color = colorOf(theme, index);
  const band = line.points.filter((point) => point.error !== null);
  return [
    {
      type: 'custom',
      name: CONFIDENCE,
      silent: true,
      z: 1,
      tooltip: { show: false },
      // All of the band is drawn with its first point.
      encode: { x: 0, y: [1, 2] },
      data: band.map((point) => [point.at, Math.max(0, point.mean - (point.error ?? 0)), point.mean + (point.error ?? 0)]),
      renderItem: ({ dataIndex }: { dataIndex: number }, api: { coord(point: number[]): [number, number] }) => {
        if (dataIndex > 0 || band.length < 2) return null;
        const upper = band.map((point) => api.coord([point.at, point.mean + (point.error ?? 0)]));
        const lower = band.map((point) => api.coord([point.at, Math.max(0, point.mean - (point.error ?? 0))]));
        return { type: 'polygon', shape: { points: [...upper, ...lower.reverse()] }, style: { fill: color, opacity: 0.18 } };
      },
    },
    {
      type: 'line',
      name: line.name,
      color,
      lineStyle: { width: 2, type: dashOf(index) },
      data: line.points.map((point) => ({
        value: [point.at, point.mean],
        symbol: 'circle',
        symbolSize: point.measured ? 8 : 6,
        itemStyle: point.measured ? { color } : { color: theme.background, borderColor: color, borderWidth: 1.5 },
      })),
    },
  ];
}
