// Rows of the headline table and of the charts: one for each figure of each run.

import type { Figure, Report, Run } from './document';
import { bytes } from './format';

export interface Row {
  /** Index in the palette while the row is drawn. */
  slot: number;
  run: Run;
  figure: Figure;
  name: string;
  /** The workload without the place: `random read 4 KiB, depth 64`. */
  workload: string;
  /** I/Os in flight over all workers. */
  depth: number;
}

export function rowsOf(report: Report): Row[] {
  const rows: Row[] = [];
  for (const run of report.runs) {
    if (run.preparation || run.of_grid) continue;
    for (const figure of run.figures) {
      rows.push({
        slot: 0,
        run,
        figure,
        name: nameOf(run, figure),
        workload: workloadOf(figure),
        depth: figure.iodepth * figure.workers,
      });
    }
  }
  return rows;
}

function nameOf(run: Run, figure: Figure): string {
  // The name of a run contains the names of all its jobs.
  const parts = [run.name];
  if (figure.job !== null) parts.push(figure.job);
  const several = run.figures.some((other) => other.direction !== figure.direction);
  if (figure.direction === 'sync') parts.push('flush');
  else if (several) parts.push(figure.direction);
  return parts.join(' · ');
}

export function blockOf(figure: Figure): string {
  const [from, to] = figure.block_bytes;
  if (to === 0) return '';
  return from === to ? bytes(from) : `${bytes(from)} to ${bytes(to)}`;
}

/** The access pattern: `random read 4 KiB`. */
export function patternOf(figure: Figure): string {
  const order =
    figure.rw === '' || figure.direction === 'mixed'
      ? ''
      : figure.rw.startsWith('rand')
        ? 'random '
        : 'sequential ';
  if (figure.direction === 'sync') return `flush after ${order}writes`;
  const mixed = figure.rw.endsWith('rw') ? ' of a mix' : '';
  return `${order}${figure.direction}${mixed} ${blockOf(figure)}`.trimEnd();
}

function workloadOf(figure: Figure): string {
  const workers = figure.workers > 1 ? ` × ${figure.workers} workers` : '';
  return figure.iodepth === 0
    ? `${patternOf(figure)}, ${figure.workers} workers`
    : `${patternOf(figure)}, depth ${figure.iodepth}${workers}`;
}

/** The drawn rows. A row keeps its colour until it is removed. */
export class Choice {
  private readonly rows = new Set<Row>();

  add(row: Row): void {
    const taken = new Set([...this.rows].map((each) => each.slot));
    row.slot = 0;
    while (taken.has(row.slot)) row.slot += 1;
    this.rows.add(row);
  }

  delete(row: Row): void {
    this.rows.delete(row);
  }

  has(row: Row): boolean {
    return this.rows.has(row);
  }
}

/** Groups items by a key, in order of first appearance. */
export function groupBy<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}
