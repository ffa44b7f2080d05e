// Latency by percentile as in HdrHistogram: each nine takes the same width, which shows the tail.

import { tails } from '../document';
import { duration } from '../format';
import { chartNames, type Row } from '../rows';
import type { Drawing } from './panel';
import { stopsOf, type Line } from './plot';
import { logarithmic, type Scale } from './scales';

interface Point {
  /** Rarity: 1 / (share of slower I/Os). */
  rarity: number;
  ns: number;
}

/** Curve of a row. It ends at the maximum latency, if known. */
function curve(row: Row): Point[] {
  const { curve_ns, count, max_ns, marks } = row.figure.latency;
  if (curve_ns.length === 0) return marks.map(([tail, ns]) => ({ rarity: 1 / tail, ns }));
  const points = tails(curve_ns.length).map((tail, index) => ({
    rarity: 1 / tail,
    ns: curve_ns[index] ?? 0,
  }));
  return count > 1
    ? [...points.filter((point) => point.rarity < count * 0.999), { rarity: count, ns: max_ns }]
    : points;
}

/** Whether a row has at least two percentiles, which make a curve. */
export const hasCurve = (row: Row) => curve(row).length > 1;

/** Name of a percentile: rarity 1000 is percentile 99.9. */
export function percentileName(rarity: number): string {
  const tail = 100 / rarity;
  const digits = Math.max(0, Math.ceil(-Math.log10(tail) - 1e-9) + (rarity > 10 ? 1 : 0));
  return `${Number((100 - tail).toFixed(Math.min(digits + 1, 9)))} %`;
}

export function percentiles(rows: Row[]): Drawing {
  const drawn = rows.filter(hasCurve);
  const names = chartNames(drawn);
  const curves = drawn.map(curve);
  const all = curves.flat();
  const lines = drawn.map((row, index): Line => ({
    kind: 'line',
    name: names[index] ?? row.name,
    slot: row.slot,
    dash: row.dash,
    points: (curves[index] ?? []).map(({ rarity, ns }) => ({ x: rarity, y: Math.max(ns, 1) })),
    step: false,
    filled: false,
    dots: false,
  }));
  return {
    summary: drawn
      .map(
        (row) =>
          `${row.name}: ${row.figure.shown.mean ?? '–'} on average${
            row.figure.latency.count > 0 ? `, at most ${duration(row.figure.latency.max_ns)}` : ''
          }.`,
      )
      .join(' '),
    plot: {
      x: { title: 'percentile (%)', scale: nines(all.map((point) => point.rarity)), lines: true },
      strips: [
        {
          title: 'latency',
          height: 260,
          y: {
            title: '',
            scale: logarithmic(
              all.map((point) => point.ns),
              'ns',
            ),
            lines: true,
          },
          marks: lines,
        },
      ],
      labels: true,
    },
    stops: stopsOf(lines, (rarity) => `percentile ${percentileName(rarity)}`, duration),
    table: () => ({
      caption: 'Latency by percentile, in nanoseconds',
      head: ['percentile', ...drawn.map((row) => row.name)],
      rows: [
        ...rarities(drawn).map((rarity) => [
          percentileName(rarity),
          ...drawn.map((row) => at(row, rarity)),
        ]),
        ['longest', ...drawn.map((row) => row.figure.latency.max_ns || '')],
      ],
    }),
  };
}

/** Percentiles that at least one curve has. */
function rarities(rows: Row[]): number[] {
  const latencies = rows.map((row) => row.figure.latency);
  const sampled = tails(Math.max(0, ...latencies.map((latency) => latency.curve_ns.length)));
  const marked = latencies.flatMap((latency) => latency.marks.map(([tail]) => tail));
  const fresh = marked.filter(
    (tail, index) => marked.indexOf(tail) === index && !sampled.some((each) => same(each, tail)),
  );
  return [...sampled, ...fresh].map((tail) => 1 / tail).sort((a, b) => a - b);
}

function at(row: Row, rarity: number): number | string {
  const { curve_ns, marks } = row.figure.latency;
  const index = tails(curve_ns.length).findIndex((tail) => same(tail, 1 / rarity));
  return marks.find(([tail]) => same(tail, 1 / rarity))?.[1] ?? curve_ns[index] ?? '';
}

function same(a: number, b: number): boolean {
  return Math.abs(a / b - 1) < 1e-6;
}

/**
 * A scale on which each nine has the same width. It ends with the longest curve: the last tick is
 * the last nine that was measured, whose label always has room.
 */
function nines(rarities: number[]): Scale {
  const most = Math.max(10, ...rarities);
  // A rarity of 1000 may be computed as a little less.
  const powers = Math.floor(Math.log10(most * 1.001));
  const ticks = Array.from({ length: powers + 1 }, (_, power) => ({
    at: 10 ** power,
    // Short texts, so that none is left out on a phone or on paper.
    text: percentileName(10 ** power).replace(' %', ''),
  }));
  return { kind: 'log', min: 1, max: Math.max(most, 10 ** powers), ticks };
}
