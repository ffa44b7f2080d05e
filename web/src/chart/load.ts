// Latency over offered rate, for results of `load`.

import type { Load, LoadPoint } from '../document';
import { iops, quantity } from '../format';
import { heatMap } from './heat';
import type { Drawing, Spec } from './panel';
import { stopsOf, type Line, type Mark, type Rule } from './plot';
import { linear, logarithmic } from './scales';

interface LoadLine {
  name: string;
  of: (point: LoadPoint) => number | null;
  /** The latency as all screens print it; empty if it is not known. */
  text: (point: LoadPoint) => string;
}

const LINES: LoadLine[] = [
  ...[50, 95, 99, 99.9].map((percent, index): LoadLine => {
    const of = (point: LoadPoint) => point.percentiles_ns[index] ?? null;
    const text = (point: LoadPoint) => (of(point) === null ? '' : (point.shown[index] ?? ''));
    return { name: `p${percent}`, of, text };
  }),
  {
    name: 'longest',
    of: (point) => point.max_ns,
    text: ({ max_ns: ns }) => (ns === null ? '' : quantity(ns, 'ns')),
  },
];

/** Whether the target kept up with a rate. */
const KEPT_UP: Record<LoadPoint['state'], string> = {
  sustained: 'yes',
  fell_behind: 'no',
  interrupted: 'interrupted',
  failed: 'failed',
};

export function loadSpecs(load: Load, number: number): Spec[] {
  const specs: Spec[] = [
    {
      id: `load-${number}-latency`,
      title: 'Latency over offered rate',
      hint:
        'Latency counts from the intended start of an I/O. Hollow points fell behind the ' +
        'offered rate: their latency grows as long as the load lasts.',
      draw: () => draw(load),
    },
  ];
  const { matrix } = load;
  if (matrix) {
    specs.push({
      id: `load-${number}-matrix`,
      title: '99th percentile of latency over read and write rate',
      hint:
        'Dashed cells in parentheses are predicted from measured ones; ' +
        '~ has no known interval; ' +
        '– is not known; ' +
        'x fell behind the offered rate.',
      draw: () => {
        const cells = matrix.cells.flatMap((row, index) =>
          row.map((cell, column) => ({
            column,
            row: index,
            value: cell.p99_ns,
            predicted: cell.state.startsWith('predicted'),
            shown: cell.shown,
          })),
        );
        const axes = {
          columns: matrix.reads_per_s.map((rate) => iops(rate)),
          rows: matrix.writes_per_s.map((rate) => iops(rate)),
          columnTitle: 'reads/s',
          rowTitle: 'writes/s',
          rising: true,
        };
        return heatMap(cells, axes, 'ns', '99th percentile');
      },
    });
  }
  return specs;
}

/** A line at the knee, or at the highest sustained rate of a study without one. */
function limitOf({ knee_per_s: knee, sustained_per_s: sustained }: Load): Mark[] {
  if (knee !== null)
    return [{ kind: 'moment', at: knee, text: `knee: ${iops(knee)}`, isNamed: true }];
  if (sustained === null) return [];
  const text = `highest sustained: ${iops(sustained)}`;
  return [{ kind: 'moment', at: sustained, text, isNamed: true }];
}

/** A line at each objective that the scale contains, from the highest to the lowest. */
function objectivesOf({ limits }: Load): Rule[] {
  const near = limits.filter(({ beyond }) => beyond === null);
  near.sort((a, b) => b.latency_ns - a.latency_ns);
  return near.map(({ name, latency_ns: value }) => ({ kind: 'rule', value, text: name }));
}

/** The objectives that the scale does not contain. */
function beyondScale({ limits }: Load): string {
  const far = limits.filter(({ beyond }) => beyond !== null);
  return far.map(({ name, beyond }) => `${name}: ${beyond} the scale`).join('; ');
}

function draw(load: Load): Drawing {
  const points = [...load.points].sort((a, b) => a.offered_per_s - b.offered_per_s);
  const objectives = objectivesOf(load);
  const sustained = points.filter((point) => point.state === 'sustained');
  const kept = sustained.map((point) => point.offered_per_s);
  const most = Math.max(0, ...kept);
  const lines = LINES.map(({ name, of }, slot): Line => ({
    kind: 'line',
    name,
    slot,
    points: points.flatMap((point) => {
      const hollow = point.state === 'fell_behind';
      const ns = hollow || point.state === 'sustained' ? of(point) : null;
      return ns === null ? [] : [{ x: point.offered_per_s, y: ns, hollow }];
    }),
    step: false,
    filled: false,
    dots: true,
  }));
  const drawn = lines.flatMap((line) => line.points);
  const all = [...drawn.flatMap(({ y }) => y ?? []), ...objectives.map(({ value }) => value)];
  const marks: Mark[] = [...lines, ...objectives, ...limitOf(load)];
  return {
    summary:
      kept.length > 0
        ? `Kept up with up to ${iops(most)} I/Os per second. Knee: ${load.knee}.`
        : 'No rate was kept up with.',
    plot: {
      x: {
        title: 'I/Os offered per second',
        scale: linear('iops', Math.max(0, ...drawn.map(({ x }) => x))),
        lines: false,
      },
      strips: [
        {
          title: '',
          height: 260,
          y: { title: '', scale: logarithmic(all, 'ns'), lines: true },
          marks,
        },
      ],
      labels: true,
      nearLabels: true,
    },
    note: beyondScale(load),
    stops: stopsOf(
      lines,
      (offered) => {
        const point = points.find((each) => each.offered_per_s === offered);
        return `${iops(offered)}/s offered, ${iops(point?.achieved_per_s ?? 0)}/s completed`;
      },
      (_, { points: drawnPoints, slot }, index) => {
        const offered = drawnPoints[index]?.x;
        const point = points.find((each) => each.offered_per_s === offered);
        return (point && LINES[slot]?.text(point)) ?? '';
      },
    ),
    table: () => ({
      caption: 'Latency over offered rate',
      head: ['offered/s', 'completed/s', 'kept up', ...LINES.map((line) => line.name)],
      rows: points.map((point) => [
        Math.round(point.offered_per_s),
        Math.round(point.achieved_per_s),
        KEPT_UP[point.state],
        ...LINES.map((line) => line.text(point)),
      ]),
    }),
  };
}
