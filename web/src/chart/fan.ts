// Percentiles over an axis: how far the tail of latency is from the median, and where it grows.

import type { Sweep } from '../document';
import { quantity } from '../format';
import { titled, type Point } from '../grid';
import type { Drawing } from './panel';
import {
  band,
  colorOf,
  dashOf,
  logarithmic,
  overAxis,
  placesOf,
  told,
  tooltip,
  valueAxis,
  type Option,
} from './parts';

const LINES: { name: string; of: (point: Point) => number | null }[] = [
  { name: 'p50', of: ({ cell }) => cell.percentiles_ns[0] ?? null },
  { name: 'p99', of: ({ cell }) => cell.percentiles_ns[1] ?? null },
  { name: 'p99.9', of: ({ cell }) => cell.percentiles_ns[2] ?? null },
  { name: 'longest', of: ({ cell }) => cell.max_ns },
  { name: 'mean', of: ({ cell }) => cell.mean_ns },
];

/** Draws the fan for one combination of the other axes. */
export function fan(sweep: Sweep, points: Point[], axis: number): Drawing {
  const over = sweep.axes[axis];
  const values = over?.values ?? [];
  const { at, numbers } = placesOf(values);
  const sorted = points
    .map((point) => ({ point, at: at(point.values[axis] ?? '') }))
    .sort((a, b) => a.at - b.at);
  const line = (index: number) =>
    sorted.flatMap(({ point, at }) => {
      const ns = LINES[index]?.of(point) ?? null;
      return ns === null || ns <= 0 ? [] : [{ at, ns, measured: point.cell.basis === 'measured' }];
    });
  const lines = LINES.map((_, index) => line(index));
  const all = lines.flat().map((point) => point.ns);
  // Only measured points have a tail: predictions have no percentiles.
  const between = (low: number, high: number) =>
    (lines[low] ?? []).flatMap(({ at, ns }) => {
      const upper = lines[high]?.find((point) => point.at === at);
      return upper ? [[at, ns, upper.ns]] : [];
    });
  const head = (index: number) => (numbers ? `${over?.name} ${index}` : (values[index] ?? ''));
  return {
    summary: LINES.flatMap(({ name }, index) =>
      lines[index]?.length
        ? [
            `${name}: from ${quantity(
              Math.min(...lines[index].map((each) => each.ns)),
              'ns',
            )} to ${quantity(Math.max(...lines[index].map((each) => each.ns)), 'ns')}.`,
          ]
        : [],
    ).join(' '),
    legend: LINES.map(({ name }, index) => ({ name, color: index, dash: dashOf(index) })),
    height: 300,
    option: (theme, hidden) => ({
      grid: { left: 76, right: 24, top: 20, bottom: 52 },
      tooltip: tooltip(theme, (hits) =>
        told(
          head(hits[0]?.value[0] ?? 0),
          hits.map((hit) => ({
            color: hit.color,
            name: hit.seriesName,
            value: quantity(hit.value[1] ?? 0, 'ns'),
          })),
        ),
      ),
      xAxis: overAxis(theme, over ? titled(over) : '', values),
      yAxis: valueAxis(theme, '', 'ns', logarithmic(all)),
      series: [
        ...[
          [0, 1, 0.26],
          [1, 2, 0.17],
          [2, 3, 0.09],
        ].flatMap(([low, high, opacity]) => {
          const names = [LINES[low ?? 0]?.name ?? '', LINES[high ?? 0]?.name ?? ''];
          return names.some((name) => hidden.has(name))
            ? []
            : [band(colorOf(theme, 0), between(low ?? 0, high ?? 0), opacity ?? 0)];
        }),
        ...LINES.flatMap(({ name }, index): Option[] => {
          const color = colorOf(theme, index);
          if (hidden.has(name)) return [];
          return [
            {
              type: 'line',
              name,
              color,
              lineStyle: { width: 2, type: dashOf(index) },
              data: (lines[index] ?? []).map(({ at, ns, measured }) => ({
                value: [at, ns],
                symbol: 'circle',
                symbolSize: 6,
                itemStyle: measured
                  ? { color }
                  : { color: theme.background, borderColor: color, borderWidth: 1.5 },
              })),
            },
          ];
        }),
      ],
    }),
    table: () => ({
      caption: `Latency over ${over?.name}`,
      head: [over?.name ?? '', ...LINES.map(({ name }) => name)],
      rows: values.map((value) => [
        value,
        ...lines.map((points) => {
          const point = points.find((each) => each.at === at(value));
          return point ? `${quantity(point.ns, 'ns')}${point.measured ? '' : ' (predicted)'}` : '';
        }),
      ]),
    }),
  };
}
