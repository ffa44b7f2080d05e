// Compares a workload on several places, or several runs of a workload on one place.

import { percentile, type Rate, type Unit } from '../document';
import { quantity, tick } from '../format';
import { groupBy, type Row } from '../rows';
import type { Drawing } from './panel';
import {
  colorOf,
  elided,
  linear,
  roomForNames,
  told,
  tooltip,
  valueAxis,
  whiskers,
  withError,
  xAxis,
  type Hit,
} from './parts';

/** The compared figure; `unit` is that of a workload's rows. */
export interface Measure {
  key: string;
  title: string;
  unit: (match: Match) => Unit;
  of: (row: Row) => Rate | null;
}

const latency = (key: string, title: string, of: (row: Row) => number | null): Measure => ({
  key,
  title,
  unit: () => 'ns',
  of: (row) => {
    const ns = of(row);
    return ns === null ? null : { mean: ns, error: null };
  },
});

/** Block size from which charts show bandwidth. */
const LARGE = 64 << 10;

const isLarge = (row: Row | undefined) => row !== undefined && row.figure.block_bytes[0] >= LARGE;

export const MEASURES: Measure[] = [
  {
    key: 'rate',
    title: 'rate (bandwidth of large I/Os, IOPS of small ones)',
    unit: (match) => (isLarge(match.rows[0]) ? 'bytes_per_s' : 'iops'),
    of: (row) => (isLarge(row) ? row.figure.bytes_per_s : row.figure.iops),
  },
  {
    key: 'iops',
    title: 'IOPS',
    unit: () => 'iops',
    of: (row) => (row.figure.iops.mean > 0 ? row.figure.iops : null),
  },
  {
    key: 'bandwidth',
    title: 'bandwidth',
    unit: () => 'bytes_per_s',
    of: (row) => (row.figure.bytes_per_s.mean > 0 ? row.figure.bytes_per_s : null),
  },
  latency('mean', 'mean latency', (row) => row.figure.latency.mean_ns),
  latency('p50', 'median latency', (row) => percentile(row.figure.latency, 0.5)),
  latency('p99', '99th percentile of latency', (row) => percentile(row.figure.latency, 0.01)),
];

export interface Match {
  workload: string;
  rows: Row[];
}

/** Workloads with rows of more than one run. */
export function matches(rows: Row[]): Match[] {
  const groups = groupBy(
    rows,
    (row) => `${row.workload}${row.figure.job === null ? '' : `, ${row.figure.job}`}`,
  );
  return [...groups]
    .filter(([, group]) => group.length > 1)
    .map(([workload, group]) => ({ workload, rows: group }));
}

/** With more bars than this, bars are vertical, thin and without names. */
const MANY = 24;

/** Bars of one workload; `places` assigns each place its colour in all charts. */
export function comparison(match: Match, measure: Measure, places: Map<string, number>): Drawing {
  const bars = match.rows.flatMap((row) => {
    const rate = measure.of(row);
    return rate === null ? [] : [{ row, rate, name: barName(row, match.rows) }];
  });
  const first = bars[0]?.rate.mean ?? 0;
  const means = bars.map((bar) => bar.rate.mean);
  const upright = bars.length > MANY;
  const unit = measure.unit(match);
  const most = Math.max(0, ...bars.map(({ rate }) => rate.mean + (rate.error ?? 0)));
  const title = measure.key === 'rate' ? (unit === 'iops' ? 'IOPS' : 'bandwidth') : measure.title;
  const names = roomForNames(bars.map((bar) => bar.name));
  return {
    summary:
      bars.length === 0
        ? 'Nothing was measured.'
        : `From ${quantity(Math.min(...means), unit)} to ${quantity(Math.max(...means), unit)}.`,
    legend: [],
    height: upright ? 280 : 46 + 30 * Math.max(1, bars.length),
    option: (theme) => {
      const axis = {
        type: 'category',
        data: bars.map((bar) => bar.name),
        inverse: !upright,
        axisLabel: {
          show: !upright,
          color: theme.text,
          formatter: (name: string) => elided(name, names),
        },
        axisTick: { show: false },
        axisLine: { lineStyle: { color: theme.line } },
      };
      const values = upright
        ? valueAxis(theme, '', unit, linear(unit, most))
        : xAxis(theme, '', {
            min: 0,
            splitNumber: 4,
            ...linear(unit, most),
            axisLabel: {
              color: theme.muted,
              hideOverlap: true,
              formatter: (value: number) => tick(value, unit),
            },
            splitLine: { show: true, lineStyle: { color: theme.faint } },
          });
      const errors = bars.map(({ rate }, index) => {
        const [low, high] = [rate.mean - (rate.error ?? 0), rate.mean + (rate.error ?? 0)];
        return upright ? [index, low, high] : [low, high, index];
      });
      const labels = upright ? [] : bars.map(({ rate }) => quantity(rate.mean, unit));
      return {
        grid: upright
          ? { left: 76, right: 16, top: 20, bottom: 24 }
          : { left: names, right: 70, top: 6, bottom: 30 },
        tooltip: tooltip(theme, (hits) =>
          tip(hits, bars[hits[0]?.dataIndex ?? 0]?.rate, title, unit),
        ),
        xAxis: upright ? axis : values,
        yAxis: upright ? values : axis,
        series: [
          {
            type: 'bar',
            name: title,
            barMaxWidth: 20,
            data: bars.map((bar) => ({
              value: bar.rate.mean,
              itemStyle: {
                color: colorOf(theme, upright ? 0 : (places.get(bar.row.run.place) ?? 0)),
              },
            })),
          },
          whiskers(theme.text, errors, {
            lying: !upright,
            cap: upright ? Math.min(4, 200 / bars.length) : 4,
            labels,
          }),
        ],
      };
    },
    table: () => ({
      caption: `${match.workload}: ${title}`,
      head: ['run', title, 'beside the first'],
      rows: bars.map((bar) => [
        bar.row.name,
        withError(bar.rate, unit),
        first > 0 ? `${(bar.rate.mean / first).toFixed(3)} ×` : '',
      ]),
    }),
  };
}

/** Name of a bar: the place, or the row if several rows share the place. */
function barName(row: Row, all: Row[]): string {
  return all.filter((other) => other.run.place === row.run.place).length === 1
    ? row.run.place
    : row.name;
}

function tip(hits: Hit[], rate: Rate | undefined, title: string, unit: Unit): string {
  const hit = hits[0];
  if (!hit || !rate) return '';
  return told(hit.name, [{ color: hit.color, name: title, value: withError(rate, unit) }]);
}
