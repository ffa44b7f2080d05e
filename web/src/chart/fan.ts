// Percentiles over an axis: how far the tail of latency is from the median, and where it grows.

import { knownDigits } from '../digits';
import type { CellTexts, Sweep, SweepCell } from '../document';
import { titled, type Point } from '../grid';
import type { Drawing } from './panel';
import { inGrid } from './parts';
import { stopsOf, type Band, type Line } from './plot';
import { logarithmic, overValues, placesOf } from './scales';

interface FanLine {
  name: string;
  of: (cell: SweepCell) => number | null;
  /** Text with the known digits, as the program writes it, if it does. */
  shown: (texts: CellTexts, ns: number) => string | null;
}

const LINES: FanLine[] = [
  { name: 'p50', of: (cell) => cell.percentiles_ns[0] ?? null, shown: ({ p50 }) => p50 },
  { name: 'p99', of: (cell) => cell.percentiles_ns[1] ?? null, shown: ({ p99 }) => p99 },
  {
    name: 'p99.9',
    of: (cell) => cell.percentiles_ns[2] ?? null,
    shown: (_, ns) => knownDigits(ns, null, 'ns'),
  },
  { name: 'longest', of: (cell) => cell.max_ns, shown: () => null },
  { name: 'mean', of: (cell) => cell.mean_ns, shown: ({ mean }) => mean },
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
      const { cell } = point;
      const ns = LINES[index]?.of(cell) ?? null;
      if (ns === null || ns <= 0) return [];
      const shown = (cell.shown && LINES[index]?.shown(cell.shown, ns)) ?? null;
      const predicted = cell.basis !== 'measured';
      const text = inGrid({ mean: ns, error: null }, 'ns', { shown, predicted });
      return [{ at, ns, measured: !predicted, text }];
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
    summary: LINES.flatMap(({ name }, index) => {
      const rising = [...(lines[index] ?? [])].sort((a, b) => a.ns - b.ns);
      const [lowest, most] = [rising[0], rising.at(-1)];
      return lowest && most ? [`${name}: from ${lowest.text} to ${most.text}.`] : [];
    }).join(' '),
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
    stops: stopsOf(curves, head, (_, { slot }, index) => lines[slot]?.[index]?.text ?? ''),
    table: () => ({
      caption: `Latency over ${over?.name}`,
      head: [over?.name ?? '', ...LINES.map(({ name }) => name)],
      rows: values.map((value) => [
        value,
        ...lines.map((points) => points.find((each) => each.at === at(value))?.text ?? ''),
      ]),
    }),
  };
}
