// Percentiles over an axis: how far the tail of latency is from the median, and where it grows.

import type { Sweep } from '../document';
import { quantity } from '../format';
import { titled, type Point } from '../grid';
import type { Drawing } from './panel';
import { stopsOf, type Band, type Line } from './plot';
import { logarithmic, overValues, placesOf } from './scales';

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
  const between = (low: number, high: number): Band['points'] =>
    (lines[low] ?? []).flatMap(({ at, ns }): Band['points'] => {
      const upper = lines[high]?.find((point) => point.at === at);
      return upper ? [[at, ns, upper.ns]] : [];
    });
  const curves = LINES.map(({ name }, slot): Line => ({
    kind: 'line',
    name,
    slot,
    points: (lines[slot] ?? []).map(({ at, ns, measured }) => ({
      x: at,
      y: ns,
      hollow: !measured,
    })),
    step: false,
    filled: false,
    dots: true,
  }));
  const bands = [0.26, 0.17, 0.09].map((opacity, low): Band => ({
    kind: 'band',
    name: LINES[low + 1]?.name ?? '',
    slot: 0,
    opacity,
    points: between(low, low + 1),
  }));
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
    plot: {
      x: { title: over ? titled(over) : '', scale: overValues(values), lines: false },
      strips: [
        {
          title: '',
          height: 230,
          y: { title: '', scale: logarithmic(all, 'ns'), lines: true },
          marks: [...bands, ...curves],
        },
      ],
      labels: true,
    },
    stops: stopsOf(curves, head, (ns) => quantity(ns, 'ns')),
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
