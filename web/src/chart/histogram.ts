// Histogram of latency.

import { bucketRange } from '../document';
import { duration } from '../format';
import { chartNames, type Row } from '../rows';
import type { Drawing } from './panel';
import { stopsOf, type Line } from './plot';
import { linear, logarithmic } from './scales';

export function histogram(rows: Row[]): Drawing {
  const drawn = rows.filter((row) => row.figure.latency.buckets.length > 0);
  const [first, last] = reach(drawn);
  const names = chartNames(drawn);
  const lines = drawn.map((row, index): Line => ({
    kind: 'line',
    name: names[index] ?? row.name,
    slot: row.slot,
    dash: row.dash,
    points: outline(row, first, last).map(([x, y]) => ({ x, y })),
    step: true,
    filled: true,
    dots: false,
  }));
  const shares = lines.flatMap((line) => line.points.map((point) => point.y ?? 0));
  const range = [Math.max(1, bucketRange(first)[0]), bucketRange(last)[1]];
  const ends = new Map<number, number>();
  for (let index = first; index <= last; index += 1) {
    const [from, to] = bucketRange(index);
    ends.set(Math.max(1, from), to);
  }
  return {
    summary: drawn
      .map((row) => `${row.name}: most I/Os took about ${duration(mode(row))}.`)
      .join(' '),
    plot: {
      x: { title: 'latency', scale: logarithmic(range, 'ns'), lines: false },
      strips: [
        {
          title: 'share of I/Os',
          height: 230,
          y: { title: '', scale: linear('percent', Math.max(0, ...shares)), lines: true },
          marks: lines,
        },
      ],
      labels: false,
    },
    stops: stopsOf(
      lines,
      (from) => `${duration(from)} to ${duration(ends.get(from) ?? from)}`,
      (share) => `${share.toPrecision(3)} %`,
    ),
    table: () => tableOf(drawn),
  };
}

/** Range of used buckets over all rows, extended by one bucket on either side. */
function reach(rows: Row[]): [number, number] {
  const used = rows.flatMap((row) => row.figure.latency.buckets.map(([index]) => index));
  return used.length === 0 ? [8, 16] : [Math.max(0, Math.min(...used) - 1), Math.max(...used) + 1];
}

/** Outline of a histogram: a step at the start of each bucket, including empty ones. */
function outline(row: Row, first: number, last: number): [number, number][] {
  const counts = new Map(row.figure.latency.buckets);
  const points: [number, number][] = [];
  for (let index = first; index <= last; index += 1) {
    points.push([
      Math.max(1, bucketRange(index)[0]),
      (100 * (counts.get(index) ?? 0)) / row.figure.latency.count,
    ]);
  }
  return points;
}

function mode(row: Row): number {
  const fullest = row.figure.latency.buckets.reduce((best, each) =>
    each[1] > best[1] ? each : best,
  );
  const [from, to] = bucketRange(fullest[0]);
  return (from + to) / 2;
}

function tableOf(rows: Row[]) {
  const used = [
    ...new Set(rows.flatMap((row) => row.figure.latency.buckets.map(([index]) => index))),
  ].sort((a, b) => a - b);
  const counts = rows.map((row) => new Map(row.figure.latency.buckets));
  return {
    caption: 'Number of I/Os by latency, in nanoseconds',
    head: ['from', 'below', ...rows.map((row) => row.name)],
    rows: used.map((index) => [
      ...bucketRange(index),
      ...counts.map((each) => each.get(index) ?? 0),
    ]),
  };
}
