// Contents of a chart, without its size and colours: axes, and marks in one or more strips.

import type { Scale } from './scales';

export interface Plot {
  x: Axis;
  /** Strips from top to bottom, which share the horizontal axis. */
  strips: Strip[];
  /** Whether names stand at the ends of lines, where there is room. */
  labels: boolean;
  /** Whether a legend replaces names that would be far from the ends of their lines. */
  nearLabels?: boolean;
}

export interface Axis {
  title: string;
  scale: Scale;
  /** Whether the ticks have lines across the chart. */
  lines: boolean;
}

export interface Strip {
  /** Text above the strip; empty for none. */
  title: string;
  /** Height in pixels. */
  height: number;
  y: Axis;
  marks: Mark[];
}

/** Height of a strip on paper as a share of that on a screen, and the lowest height in pixels. */
const PAPER_SHARE = 0.55;
const PAPER_LEAST_PX = 56;

/** The plot with lower strips, so that several charts fit on a page. Rows of names keep theirs. */
export function lowered(plot: Plot): Plot {
  const strips = plot.strips.map((strip): Strip => {
    if (strip.y.scale.kind === 'names') return strip;
    const height = Math.max(PAPER_LEAST_PX, Math.round(PAPER_SHARE * strip.height));
    return { ...strip, height: Math.min(strip.height, height) };
  });
  return { ...plot, strips };
}

/** Index in the palette; `null` is the colour of text. */
export type Slot = number | null;

export type Mark = Line | Band | Whiskers | Bars | Cells | Rule | Span | Moment;

export interface Line {
  kind: 'line';
  name: string;
  /** Shorter name at the end of the line, where the title of the strip says the rest. */
  label?: string;
  slot: number;
  /** Index of the line style, where several series have the colour of one subject. */
  dash?: number | undefined;
  points: LinePoint[];
  /** Whether a value lasts until the next point. */
  step: boolean;
  /** Whether the area below is tinted. */
  filled: boolean;
  /** Whether points have symbols. */
  dots: boolean;
}

export interface LinePoint {
  x: number;
  y: number | null;
  /** Hollow symbol: predicted, without a known interval, or behind the offered rate. */
  hollow?: boolean;
}

/** An area between two values of each `x`. */
export interface Band {
  kind: 'band';
  /** Series that the band belongs to. It is hidden with that. */
  name: string;
  slot: number;
  opacity: number;
  points: [x: number, low: number, high: number][];
}

/** Vertical intervals. */
export interface Whiskers {
  kind: 'whiskers';
  name: string;
  slot: number;
  points: [x: number, low: number, high: number][];
}

/** One bar in each of some categories. */
export interface Bars {
  kind: 'bars';
  name: string;
  slot: number;
  /** Whether bars are horizontal. */
  lying: boolean;
  bars: Bar[];
}

export interface Bar {
  /** Index of the category. */
  at: number;
  value: number;
  /** Bounds of the 95 % confidence interval, if known. */
  between: [number, number] | null;
  /** The promised limit. */
  limit: number | null;
  predicted: boolean;
  /** Colour in place of that of the series. */
  slot?: number;
  /** Text at the end of a horizontal bar. */
  text?: string;
}

/** Cells of a heat map. */
export interface Cells {
  kind: 'cells';
  cells: Cell[];
}

export interface Cell {
  column: number;
  row: number;
  text: string;
  /** Position between the lowest and highest value, 0 to 1; `null` if unknown. */
  share: number | null;
  predicted: boolean;
}

/** A horizontal limit with its name. */
export interface Rule {
  kind: 'rule';
  value: number;
  text: string;
}

/** A shaded part of the horizontal axis. The note of the chart explains it. */
export interface Span {
  kind: 'span';
  from: number;
  to: number;
}

/** A moment on the horizontal axis. */
export interface Moment {
  kind: 'moment';
  at: number;
  text: string;
  /** Whether the text stands in the chart instead of a tooltip. */
  isNamed?: boolean;
}

/** A place in a chart where pointer and keyboard stop, and the values there. */
export interface Stop {
  x: number;
  /** Vertical position, where stops differ in it: horizontal bars, heat maps. */
  y?: number;
  head: string;
  lines: { slot: Slot; name: string; value: string }[];
}

/** A series in the legend. */
export interface Entry {
  name: string;
  slot: number;
  dash: string | null;
  /** Opacity of bars; `null` for lines. */
  opacity: number | null;
}

/** Series in the order of the legend. Names are distinct. */
export function seriesOf(plot: Plot): Entry[] {
  const found = new Map<string, Entry>();
  for (const { marks } of plot.strips) {
    for (const mark of marks) {
      if (mark.kind !== 'line' && mark.kind !== 'bars') continue;
      const { name, slot } = mark;
      const dash = mark.kind === 'line' ? dashOf(slot, mark.dash) : null;
      const opacity = mark.kind === 'bars' ? opacityOf(slot) : null;
      if (!found.has(name)) found.set(name, { name, slot, dash, opacity });
    }
  }
  return [...found.values()];
}

/** Line styles, so that series differ without colour too. */
const DASHES = [null, '7 4', '2 3', '9 3 2 3', '12 4', '5 2 1 2'];

/** Number of line styles. */
export const STYLES = DASHES.length;

/** Opacity of the bars of a series. Colours repeat after six series, and then are lighter. */
export function opacityOf(slot: number): number {
  return [1, 0.45][Math.floor(slot / STYLES)] ?? 0.2;
}

/** `stroke-dasharray` of a series. */
export function dashOf(slot: number, dash = slot): string | null {
  // Colours repeat after six series, and then with another line style.
  return DASHES[(dash + Math.floor(slot / DASHES.length)) % DASHES.length] ?? null;
}

/**
 * Line styles of series, so that those of one colour differ. Beyond the palette, colours recur: a
 * style that another series has in the colour is replaced by the next free one.
 */
export function distinctDashes(styles: { slot: number; dash?: number | undefined }[]): number[] {
  const taken = new Set<string>();
  return styles.map(({ slot, dash = slot }) => {
    const key = (each: number) => `${slot % STYLES} ${dashOf(slot, each)}`;
    const all = DASHES.map((_, step) => dash + step);
    const free = all.find((each) => !taken.has(key(each))) ?? dash;
    taken.add(key(free));
    return free;
  });
}

/** Stops of lines: one for each horizontal position that a shown line has. */
export function stopsOf(
  lines: Line[],
  head: (x: number) => string,
  value: (y: number, line: Line, index: number) => string,
): Stop[] {
  const at = new Map<number, Stop>();
  for (const line of lines) {
    line.points.forEach(({ x, y }, index) => {
      if (y === null) return;
      const stop = at.get(x) ?? { x, head: head(x), lines: [] };
      stop.lines.push({ slot: line.slot, name: line.name, value: value(y, line, index) });
      at.set(x, stop);
    });
  }
  return [...at.values()].sort((a, b) => a.x - b.x);
}
