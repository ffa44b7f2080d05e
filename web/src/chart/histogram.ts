// Histogram of latency.

import { bucketRange } from '../document';
import { duration, tick } from '../format';
import type { Row } from '../rows';
import type { Drawing } from './panel';
import { colorOf, dashOf, logarithmic, told, tooltip, valueAxis, xAxis, type Hit } from './parts';

export function histogram(rows: Row[]): Drawing {
  const drawn = rows.filter((row) => row.figure.latency.buckets.length > 0);
  const [first, last] = reach(drawn);
  const shares = drawn.map((row) => outline(row, first, last));
  const { marks, ...scale } = logarithmic([
    Math.max(1, bucketRange(first)[0]),
    bucketRange(last)[1],
  ]);
  return {
    summary: drawn
      .map((row) => `${row.name}: most I/Os took about ${duration(mode(row))}.`)
      .join(' '),
    legend: drawn.map((row) => ({ name: row.name, color: row.slot, dash: dashOf(row.slot) })),
    height: 320,
    option: (theme, hidden) => ({
      grid: { left: 56, right: 24, top: 30, bottom: 52 },
      tooltip: tooltip(theme, (hits) => tip(hits, first)),
      xAxis: xAxis(theme, 'latency', {
        ...scale,
        axisTick: { customValues: marks, lineStyle: { color: theme.line } },
        axisLabel: {
          color: theme.muted,
          hideOverlap: true,
          customValues: marks,
          formatter: (ns: number) => tick(ns, 'ns'),
        },
      }),
      yAxis: valueAxis(theme, 'share of I/Os', 'percent'),
      series: drawn.map((row, index) => ({
        type: 'line',
        step: 'end',
        name: row.name,
        data: hidden.has(row.name) ? [] : shares[index],
        showSymbol: false,
        lineStyle: { width: 1.5, type: dashOf(row.slot) },
        areaStyle: { opacity: 0.12 },
        color: colorOf(theme, row.slot),
      })),
    }),
    table: () => tableOf(drawn),
  };
}

/** Range of used buckets over all rows, extended by one bucket on either side. */
function reach(rows: Row[]): [number, number] {
  const used = rows.flatMap((row) => row.figure.latency.buckets.map(([index]) => index));
  return used.length === 0 ? [8, 16] : [Math.max(0, Math.min(...used) - 1), Math.max(...used) + 1];
}

/** Outline of a histogram: a step at the start of each bucket, including empty ones. */
function outline(row: Row, first: number, last: number): number[][] {
  const counts = new Map(row.figure.latency.buckets);
  const points: number[][] = [];
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

function tip(hits: Hit[], first: number): string {
  const [from, to] = bucketRange(first + (hits[0]?.dataIndex ?? 0));
  const lines = hits.map((hit) => ({
    color: hit.color,
    name: hit.seriesName,
    value: `${(hit.value[1] ?? 0).toPrecision(3)} %`,
  }));
  return told(`${duration(from)} to ${duration(to)}`, lines);
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
