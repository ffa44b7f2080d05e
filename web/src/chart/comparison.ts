// Compares a workload on several places, or several runs of a workload on one place.

import { knownDigits } from '../digits';
import { percentile, type Figure, type Rate, type Unit } from '../document';
import { groupBy, type Row } from '../rows';
import type { Drawing } from './panel';
import { bounds, highest, withError } from './parts';
import type { Bars } from './plot';
import { linear, names, type Scale } from './scales';

/** The compared figure; `unit` is that of a workload's rows. */
export interface Measure {
  key: string;
  title: string;
  unit: (match: Match) => Unit;
  of: (row: Row) => Rate | null;
}

const latency = (
  key: string,
  title: string,
  of: (figure: Figure) => number | null,
  between: (figure: Figure) => [number, number] | null | undefined,
): Measure => ({
  key,
  title,
  unit: () => 'ns',
  of: ({ figure }) => {
    const ns = of(figure);
    const ends = between(figure);
    if (ns === null) return null;
    // As in the program's tables, the longer half of an interval counts.
    return { mean: ns, error: ends ? Math.max(ns - ends[0], ends[1] - ns) : null };
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
  latency(
    'mean',
    'mean latency',
    (figure) => figure.latency.mean_ns,
    (figure) => figure.mean_bounds,
  ),
  latency(
    'p50',
    'median latency',
    (figure) => percentile(figure.latency, 0.5),
    (figure) => figure.percentile_bounds[0],
  ),
  latency(
    'p99',
    '99th percentile of latency',
    (figure) => percentile(figure.latency, 0.01),
    (figure) => figure.percentile_bounds[1],
  ),
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
  const shown = match.rows.flatMap((row) => {
    const rate = measure.of(row);
    return rate === null ? [] : [{ row, rate, name: barName(row, match.rows) }];
  });
  const first = shown[0]?.rate;
  const rising = shown.map(({ rate }) => rate).sort((a, b) => a.mean - b.mean);
  const [lowest, most] = [rising[0], rising.at(-1)];
  const lying = shown.length <= MANY;
  const unit = measure.unit(match);
  const digits = (rate: Rate) => knownDigits(rate.mean, rate.error, unit);
  const title = measure.key === 'rate' ? (unit === 'iops' ? 'IOPS' : 'bandwidth') : measure.title;
  const bars: Bars = {
    kind: 'bars',
    name: title,
    slot: 0,
    lying,
    bars: shown.map(({ row, rate }, at) => ({
      at,
      value: rate.mean,
      between: bounds(rate),
      limit: null,
      predicted: false,
      slot: lying ? (places.get(row.run.subject) ?? 0) : 0,
      ...(lying ? { text: digits(rate) } : {}),
    })),
  };
  const values = linear(unit, highest(shown.map(({ rate }) => rate)));
  // Upright bars are too thin for names: pointer, keyboard and table have them.
  const categories = names(lying ? shown.map(({ name }) => name) : [], lying);
  const positions: Scale = { ...categories, max: Math.max(0.5, shown.length - 0.5) };
  const axis = { title: '', lines: false, scale: positions };
  return {
    summary:
      lowest && most
        ? `From ${digits(lowest)} to ${digits(most)}.`
        : 'Nothing was measured.',
    plot: {
      x: lying ? { title: '', lines: true, scale: values } : axis,
      strips: [
        {
          title: '',
          height: lying ? 30 * Math.max(1, shown.length) : 230,
          y: lying ? axis : { title: '', lines: true, scale: values },
          marks: [bars],
        },
      ],
      labels: false,
    },
    stops: shown.map(({ row, rate, name }, index) => ({
      ...(lying ? { x: 0, y: index } : { x: index }),
      head: name,
      lines: [
        {
          slot: lying ? (places.get(row.run.subject) ?? 0) : 0,
          name: title,
          value: withError(rate, unit),
        },
      ],
    })),
    table: () => {
      const ratios = shown.map(({ rate }) =>
        first && first.mean > 0 && rate.mean > 0 ? ratio(rate, first) : '',
      );
      const isKnown = !ratios.some((text) => text.startsWith('~'));
      return {
        caption: `${match.workload}: ${title}`,
        head: ['run', title, `times the first${isKnown ? '' : ' (~: interval not known)'}`],
        rows: shown.map(({ row, rate }, index) => [
          row.name,
          withError(rate, unit),
          ratios[index] ?? '',
        ]),
      };
    },
  };
}

/**
 * A rate divided by the first one, in the form of crates/report/src/known_digits.rs: `0.500 ±0.008`
 * ends at the second digit of half its interval, and `~2.5` has no known interval. Unlike a rate, a
 * ratio has no smaller unit, so it has as many decimals as its digits need.
 */
function ratio(rate: Rate, first: Rate): string {
  if (rate === first) return '1';
  const share = rate.mean / first.mean;
  const errors = [rate.error ?? Infinity, first.error ?? Infinity] as const;
  const half = share * Math.hypot(errors[0] / rate.mean, errors[1] / first.mean);
  if (half >= share) return `~${rounded(share, secondPlace(share))}`;
  // At most three digits. The printed interval contains the measured one.
  const place = Math.max(secondPlace(share) - 1, half > 0 ? secondPlace(half) : -Infinity);
  const text = rounded(share, place);
  const width = (half + Math.abs(share - Number(text))) / 10 ** place;
  return `${text} ±${rounded(Math.max(1, Math.ceil(width - 1e-6)) * 10 ** place, place)}`;
}

/** Power of ten of the second digit. */
function secondPlace(value: number): number {
  return Number(value.toExponential(1).split('e')[1]) - 1;
}

/** A value that ends at a power of ten. */
function rounded(value: number, place: number): string {
  const step = 10 ** place;
  return (Math.round(value / step) * step).toFixed(Math.max(0, -place));
}

/** Name of a bar: the place, or the row if several rows share the place. */
function barName(row: Row, all: Row[]): string {
  return all.filter((other) => other.run.subject === row.run.subject).length === 1
    ? row.run.subject
    : row.name;
}
