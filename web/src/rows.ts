// Rows of the headline table and of the charts: one for each figure of each run.

import { dashOf, STYLES } from './chart/plot';
import type { Styles } from './chart/styles';
import type { Figure, Report, Run } from './document';
import { bytes } from './format';
import { LARGE_BYTES } from './grid';

export interface Row {
  /** Index in the palette while the row is drawn. */
  slot: number;
  /** Index of the line style, if the rows of a subject share its colour: one for each workload. */
  dash?: number | undefined;
  run: Run;
  figure: Figure;
  /** Unique among the rows. */
  name: string;
  /** The name without the subject. */
  phase: string;
  /** The workload without the place: `random read 4 KiB, depth 64`. */
  workload: string;
  /** I/Os in flight over all workers. */
  depth: number;
  /** Order in which rows are drawn if there is no room for all, as in charts of `plot`. */
  rank: number;
}

export function rowsOf(report: Report): Row[] {
  const runs = report.runs.filter((run) => !run.preparation && !run.of_grid);
  const isComparison = new Set(runs.map((run) => run.subject)).size > 1;
  const workloads = groupBy(
    runs.flatMap((run) => run.figures.map((figure) => ({ run, figure }))),
    ({ run, figure }) => `${run.subject}\n${phaseOf(run, figure)}`,
  );
  // Runs with the same name and different workloads are distinguished by these.
  const isSame = (run: Run, figure: Figure) =>
    new Set(
      workloads
        .get(`${run.subject}\n${phaseOf(run, figure)}`)
        ?.map((each) => workloadOf(each.figure)),
    ).size < 2;
  const deepest = new Map<string, number>();
  const patternAt = (run: Run, figure: Figure) => `${run.subject}\n${patternOf(figure)}`;
  const depthOf = (figure: Figure) => figure.iodepth * figure.workers;
  for (const run of runs) {
    for (const figure of run.figures) {
      const key = patternAt(run, figure);
      deepest.set(key, Math.max(depthOf(figure), deepest.get(key) ?? 0));
    }
  }
  const rows: Row[] = [];
  const seen = new Map<string, number>();
  for (const run of runs) {
    for (const figure of run.figures) {
      const phase = isSame(run, figure)
        ? phaseOf(run, figure)
        : `${phaseOf(run, figure)}: ${workloadOf(figure)}`;
      const name = isComparison ? `${run.subject}: ${phase}` : phase;
      const times = (seen.get(name) ?? 0) + 1;
      seen.set(name, times);
      rows.push({
        slot: 0,
        run,
        figure,
        name: times > 1 ? `${name} #${times}` : name,
        phase,
        workload: workloadOf(figure),
        depth: depthOf(figure),
        rank: rankOf(run, figure, depthOf(figure) < (deepest.get(patternAt(run, figure)) ?? 0)),
      });
    }
  }
  return rows;
}

/** Writes that flushes follow come last, as they reach the page cache only. */
function rankOf(run: Run, figure: Figure, hasDeeper: boolean): number {
  const isFlushed = run.figures.some((other) => other.direction === 'sync');
  if (figure.direction === 'write' && isFlushed) return 2;
  return hasDeeper ? 1 : 0;
}

function phaseOf(run: Run, figure: Figure): string {
  // The name of a run contains the names of all its jobs.
  const parts = [figure.job ?? run.name];
  const several = run.figures.some((other) => other.direction !== figure.direction);
  if (figure.direction === 'sync') parts.push('flush');
  else if (several) parts.push(figure.direction);
  return parts.join(' · ');
}

/** Names for a chart: only the subjects, if the rows are the same workload of several subjects. */
export function chartNames(rows: Row[]): string[] {
  const isSame = new Set(rows.map((row) => row.phase)).size === 1 && rows.length > 1;
  const subjects = rows.map((row) => row.run.subject);
  return isSame && new Set(subjects).size === rows.length ? subjects : rows.map((row) => row.name);
}

/** Whether the I/Os are so large that bandwidth says more than IOPS. */
export function isLargeFigure(figure: Figure): boolean {
  return figure.block_bytes[0] >= LARGE_BYTES && figure.bytes_per_s.mean > 0;
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

export function workloadOf(figure: Figure): string {
  const workers = figure.workers > 1 ? ` × ${figure.workers} workers` : '';
  return figure.iodepth === 0
    ? `${patternOf(figure)}, ${figure.workers} workers`
    : `${patternOf(figure)}, depth ${figure.iodepth}${workers}`;
}

/**
 * The rows that a chart with room for `most` draws, in their order. Writes that flushes follow give
 * way first, as they reach the page cache only, then rows that a deeper one of the same pattern
 * represents.
 */
export function mainRows(rows: Row[], most: number): Row[] {
  if (rows.length <= most) return rows;
  const ranked = [...rows].sort((a, b) => a.rank - b.rank);
  const kept = new Set(ranked.slice(0, most));
  return rows.filter((row) => kept.has(row));
}

/** The drawn rows. A row keeps its colour and line style until it is removed. */
export class Choice {
  private readonly rows = new Set<Row>();

  /**
   * `subjects` are those of the report. If there are several, each has one colour, else each
   * workload has its style.
   */
  constructor(
    private readonly subjects: string[],
    private readonly styles: Styles,
  ) {}

  add(row: Row): void {
    const { subject } = row.run;
    if (this.subjects.length > 1) {
      row.slot = Math.max(0, this.subjects.indexOf(subject));
      row.dash = dashOfWorkload(row, [...this.rows]);
    } else {
      const { slot, dash } = this.styles.get(row.phase) ?? { slot: 0, dash: 0 };
      const alike = [...this.rows].filter((each) => each.slot === slot);
      const dashes = Array.from({ length: STYLES }, (_, step) => (dash + step) % STYLES);
      row.slot = slot;
      row.dash = dashes.find((each) => alike.every((other) => other.dash !== each)) ?? dash;
    }
    this.rows.add(row);
  }

  delete(row: Row): void {
    this.rows.delete(row);
  }

  has(row: Row): boolean {
    return this.rows.has(row);
  }
}

/** The line style of the drawn rows of the same workload. A colour has each style once. */
export function dashOfWorkload(row: Row, drawn: Row[]): number {
  const dash = (each: Row) => each.dash ?? 0;
  const alike = drawn.filter((each) => each.slot % STYLES === row.slot % STYLES);
  const taken = alike.map((each) => dashOf(each.slot, dash(each)));
  const isFree = (each: number) => !taken.includes(dashOf(row.slot, each));
  const same = drawn.filter((each) => each.phase === row.phase).map(dash);
  const others = drawn.map(dash);
  const styles = Array.from({ length: STYLES }, (_, index) => index);
  return (
    same.find(isFree) ??
    styles.find((each) => isFree(each) && !others.includes(each)) ??
    styles.find(isFree) ??
    firstFree(others)
  );
}

/** The lowest index that is not taken. */
function firstFree(taken: number[]): number {
  let index = 0;
  while (taken.includes(index)) index += 1;
  return index;
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
