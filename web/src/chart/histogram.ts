// Histogram of latency. All bins have the same width on the logarithmic axis.

import { bucketRange } from '../document';
import { duration } from '../format';
import { chartNames, type Row } from '../rows';
import type { Drawing } from './panel';
import { stopsOf, type Line } from './plot';
import { linear, logarithmic } from './scales';

/**
 * Bins of a power of two, as in crates/report/src/plot/histogram_plot.rs. All bins have the same
 * width on the axis. Buckets double their width at each power of two: shares would jump there.
 */
const BINS_PER_OCTAVE = 5;

/** Title of the vertical axis: its values depend on the width of a bin. */
const SHARE_TITLE = 'share of I/Os per factor of 1.15 in latency';

export function histogram(rows: Row[]): Drawing {
  const drawn = rows.filter((row) => row.figure.latency.buckets.length > 0);
  const binned = drawn.map(binShares);
  const [first, last] = reach(binned);
  const names = chartNames(drawn);
  const bins = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const lines = drawn.map((row, index): Line => ({
    kind: 'line',
    name: names[index] ?? row.name,
    slot: row.slot,
    dash: row.dash,
    points: bins.map((bin) => ({ x: binStart(bin), y: binned[index]?.get(bin) ?? 0 })),
    step: true,
    filled: true,
    dots: false,
  }));
  const shares = binned.flatMap((each) => [...each.values()]);
  const range = [binStart(first), binStart(last + 1)];
  const ends = new Map(bins.map((bin) => [binStart(bin), binStart(bin + 1)]));
  return {
    summary: drawn
      .map((row, index) => `${row.name}: most I/Os took about ${duration(mode(binned[index]))}.`)
      .join(' '),
    plot: {
      x: { title: 'latency', scale: logarithmic(range, 'ns'), lines: false },
      strips: [
        {
          title: SHARE_TITLE,
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

/** Range of used bins over all rows, extended by one bin on either side. */
function reach(binned: Map<number, number>[]): [number, number] {
  const used = binned.flatMap((each) => [...each.keys()]);
  return used.length === 0 ? [50, 60] : [Math.max(0, Math.min(...used) - 1), Math.max(...used) + 1];
}

/** Shares of the I/Os in percent by bin. A bucket is spread evenly over its part of the axis. */
function binShares(row: Row): Map<number, number> {
  const { buckets, count: all } = row.figure.latency;
  const shares = new Map<number, number>();
  const add = (bin: number, share: number) => shares.set(bin, (shares.get(bin) ?? 0) + share);
  for (const [index, count] of buckets) {
    const share = (100 * count) / all;
    const [from, to] = bucketRange(index).map(binPosition) as [number, number];
    // The bucket of 0 ns has no place on a logarithmic axis.
    if (to <= from) add(from, share);
    for (let bin = Math.floor(from); bin < to; bin += 1) {
      const overlap = Math.min(to, bin + 1) - Math.max(from, bin);
      add(bin, (share * overlap) / (to - from));
    }
  }
  return shares;
}

/** Position of a latency on the axis, in bins from 1 ns. */
const binPosition = (ns: number) => BINS_PER_OCTAVE * Math.log2(Math.max(1, ns));

/** Lower end of a bin. */
const binStart = (bin: number) => 2 ** (bin / BINS_PER_OCTAVE);

/** Middle of the fullest bin. */
function mode(shares = new Map<number, number>()): number {
  const [fullest] = [...shares].sort((a, b) => b[1] - a[1]);
  return binStart((fullest?.[0] ?? 0) + 0.5);
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
