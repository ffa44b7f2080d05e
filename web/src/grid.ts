// A sweep as a table of points: every cell with its value on each axis.

import type { Axis, Rate, Sweep, SweepCell, Unit } from './document';

export interface Point {
  /** One value for each axis. */
  values: string[];
  /** Whether it is of I/Os so large that people speak of bandwidth. */
  isLarge: boolean;
  cell: SweepCell;
}

export interface Measure {
  key: string;
  title: string;
  unit: Unit;
  of: (cell: SweepCell) => Rate | null;
}

const known = (mean: number | null): Rate | null => (mean === null ? null : { mean, error: null });

export const MEASURES: Measure[] = [
  { key: 'iops', title: 'IOPS', unit: 'iops', of: (cell) => cell.iops },
  { key: 'bandwidth', title: 'Bandwidth', unit: 'bytes_per_s', of: bandwidth },
  { key: 'mean', title: 'Mean latency', unit: 'ns', of: (cell) => known(cell.mean_ns) },
  { key: 'p99', title: '99th percentile of latency', unit: 'ns', of: (cell) => known(cell.percentiles_ns[1] ?? null) },
];

/** From this size of I/O on, people speak of bandwidth. */
export const LARGE_BYTES = 64 << 10;

/** As sure as the IOPS are: all I/Os of a cell are of one size, or of one mix of sizes. */
function bandwidth(cell: SweepCell): Rate | null {
  if (cell.bytes_per_s === null) return null;
  const { iops } = cell;
  return { mean: cell.bytes_per_s, error: iops === null || iops.error === null || iops.mean === 0 ? null : (iops.error / iops.mean) * cell.bytes_per_s };
}

export function pointsOf(sweep: Sweep): Point[] {
  return sweep.curves.flatMap((curve) => curve.cells.filter((cell) => cell.basis !== 'unknown').map((cell) => ({ values: [...curve.values, String(cell.iodepth)], isLarge: curve.block_bytes >= LARGE_BYTES, cell })));
}

/** Axes along which anything changes. */
export function varying(sweep: Sweep): number[] {
  return sweep.axes.flatMap((axis, index) => (axis.values.length > 1 ? [index] : []));
}

/** Whether something lies between the values of an axis: numbers and sizes, not patterns or targets. */
export function isOrdered(axis: Axis | undefined): boolean {
  return axis?.values.every((value) => /^\d+(\.\d+)?([kmgt]i?b?|%)?$/i.test(value)) ?? false;
}

/** A value as people say it. */
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

/** What an axis is called below a chart. */
export function titled(axis: Axis): string {
  const titles: { [name: string]: string } = { iodepth: 'I/Os in flight of each job', bs: 'block size', numjobs: 'jobs', rw: 'pattern', target: 'target' };
  return titles[axis.name] ?? axis.name;
}

/** Every combination of the values of these axes that any point has, in the order of the axes. */
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
