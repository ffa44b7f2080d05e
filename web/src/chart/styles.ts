// Colours and line styles of the workloads of a single subject: each has one in all charts.

import type { Row } from '../rows';
import type { DepthLine } from './depth';
import { distinctDashes, STYLES } from './plot';

export interface Style {
  /** Index in the palette. */
  slot: number;
  /** Index of the line style. */
  dash: number;
}

/** Style of each workload by its name. */
export type Styles = Map<string, Style>;

/**
 * Assigns a style to each workload, as in crates/report/src/plot/workload_styles.rs: to the rows
 * that charts of latency draw, the lines over depth, and all other rows.
 */
export function workloadStyles(main: Row[], lines: DepthLine[], all: Row[]): Styles {
  const panels = [...lines].sort((a, b) => Number(a.isLarge) - Number(b.isLarge));
  const charts = [
    main.map((row) => row.phase),
    panels.map((line) => line.pattern),
    all.map((row) => row.phase),
  ];
  const styles: Styles = new Map();
  for (const names of charts)
    for (const name of names) if (!styles.has(name)) styles.set(name, freeStyle(styles, names));
  return styles;
}

/**
 * A style that no workload has. Its colour is one that no workload of the chart `names` has, if
 * there is one.
 */
function freeStyle(styles: Styles, names: string[]): Style {
  const taken = [...styles].flatMap(([name, { slot }]) => (names.includes(name) ? [slot] : []));
  const all = Array.from({ length: STYLES }, (_, index) => index);
  const slot = all.find((each) => !taken.includes(each)) ?? taken.length % STYLES;
  const alike = [...styles.values()].filter((style) => style.slot === slot);
  const dashes = all.map((step) => (slot + step) % STYLES);
  return { slot, dash: dashes.find((dash) => alike.every((each) => each.dash !== dash)) ?? slot };
}

/** Rows of a single subject in the styles of their workloads. Rows of one differ in their dash. */
export function styledRows(rows: Row[], styles: Styles): Row[] {
  const found = rows.map((row) => styles.get(row.phase) ?? { slot: 0, dash: 0 });
  const dashes = distinctDashes(found);
  return rows.map((row, index) => ({ ...row, slot: found[index]?.slot ?? 0, dash: dashes[index] }));
}
