// A sweep as a table of points: each cell with its value on each axis.

import type { Axis, Rate, Sweep, SweepCell, Unit } from './document';

export interface Point {
  /** Value of each axis. */
  values: string[];
  /** Whether the blocks are so large that the chart shows bandwidth instead of IOPS. */
  isLarge: boolean;
  cell: SweepCell;
}

export interface Measure {
  key: string;
  title: string;
  unit: Unit;
  of: (cell: SweepCell) => Rate | null;
  /** Text of the figure with its known digits, as the program writes it. */
  shown: (cell: SweepCell) => string | null;
}

const known = (mean: number | null): Rate | null => (mean === null ? null : { mean, error: null });

export const MEASURES: Measure[] = [
  {
    key: 'iops',
    title: 'IOPS',
    unit: 'iops',
    of: (cell) => cell.iops,
    shown: (cell) => cell.shown?.iops ?? null,
  },
  {
    key: 'bandwidth',
    title: 'Bandwidth',
    unit: 'bytes_per_s',
    of: bandwidth,
    shown: (cell) => cell.shown?.bandwidth ?? null,
  },
  {
    key: 'mean',
    title: 'Mean latency',
    unit: 'ns',
    of: (cell) => known(cell.mean_ns),
    shown: (cell) => cell.shown?.mean ?? null,
  },
  {
    key: 'p99',
    title: '99th percentile of latency',
    unit: 'ns',
    of: (cell) => known(cell.percentiles_ns[1] ?? null),
    shown: (cell) => cell.shown?.p99 ?? null,
  },
];

/** Block size from which charts show bandwidth. */
export const LARGE_BYTES = 64 << 10;

/** Bandwidth with the relative error of IOPS: a cell has one block size or one mix of sizes. */
function bandwidth(cell: SweepCell): Rate | null {
  if (cell.bytes_per_s === null) return null;
  const { iops } = cell;
  return {
    mean: cell.bytes_per_s,
    error:
      iops === null || iops.error === null || iops.mean === 0
        ? null
        : (iops.error / iops.mean) * cell.bytes_per_s,
  };
}

export function pointsOf(sweep: Sweep): Point[] {
  return sweep.curves.flatMap((curve) =>
    curve.cells
      .filter((cell) => cell.basis !== 'unknown')
      .map((cell) => ({
        values: [...curve.values, String(cell.iodepth)],
        isLarge: curve.block_bytes >= LARGE_BYTES,
        cell,
      })),
  );
}

/** Indexes of the axes with more than one value. */
export function varying(sweep: Sweep): number[] {
  return sweep.axes.flatMap((axis, index) => (axis.values.length > 1 ? [index] : []));
}

/** Whether the values of an axis are ordered: numbers and sizes, not patterns or targets. */
export function isOrdered(axis: Axis | undefined): boolean {
  return axis?.values.every((value) => /^\d+(\.\d+)?([kmgt]i?b?|%)?$/i.test(value)) ?? false;
}

/** Formats a value of an axis. */
export function named(axis: Axis | undefined, value: string): string {
  switch (axis?.name) {
    case 'rw':
    case 'bs':
    case 'target':
    case 'job':
      return value;
    case 'numjobs':
      return value === '1' ? '1 job' : `${value} jobs`;
    case 'iodepth':
      return `depth ${value}`;
    default:
      return `${axis?.name}=${value}`;
  }
}

/** Title of an axis below a chart. */
export function titled(axis: Axis): string {
  const titles: { [name: string]: string } = {
    iodepth: 'I/Os in flight of each job',
    bs: 'block size',
    numjobs: 'jobs',
    rw: 'pattern',
    target: 'target',
  };
  return titles[axis.name] ?? axis.name;
}

/** All combinations of values of these axes that have a point, in the order of the axes. */
export function combinations(points: Point[], axes: number[]): string[][] {
  const found = new Map<string, string[]>();
  for (const point of points) {
    const values = axes.map((axis) => point.values[axis] ?? '');
    found.set(JSON.stringify(values), values);
  }
  return [...found.values()];
}

export function has(point: Point, axes: number[], values: string[]): boolean {
  return axes.every((axis, index) => point.values[axis] === values[index]);
}
