// Draws a plot as SVG of a given width.

import type { Theme } from '../theme';
import { horizontalAxis, LABELS_PX, leftOf, TITLE_PX, verticalAxis } from './axes';
import { colorOf, element, FONT_PX, LINE_PX, path, round, write, type Place } from './elements';
import { areNear, endLabels, linesBeneath } from './labels';
import { dashOf, opacityOf, seriesOf, type Bars, type Cell, type Line, type Mark } from './plot';
import type { Plot, Strip } from './plot';
import { place } from './scales';
import { capped, textWidth } from './text';

/** Narrower charts have a legend instead of names at the ends of lines. */
const LABELS_FROM_PX = 480;
/** A strip with more lines than this has a legend instead of names at their ends. */
const LABELS_MOST = 6;
/** Share of the chart's width that names at the left or right fill at most. */
const NAMES_SHARE = 0.34;
/** Share of the chart's width that names at the ends of lines fill at most. */
const LABELS_SHARE = 0.4;
/** Share of a category's width that its bars fill. */
const FILLED = 0.82;

export interface Drawn {
  svg: SVGSVGElement;
  width: number;
  height: number;
  /** Whether all names of series stand in the chart, so that it needs no legend. */
  labelled: boolean;
  /** Names of limits without room in the chart. */
  unnamed: string[];
  /** Pixels of a value on the horizontal axis, and on the vertical one of the first strip. */
  x: (value: number) => number;
  y: (value: number) => number;
  /** Upper edge of the first strip, and lower edge of the last one. */
  top: number;
  bottom: number;
}

/** Height of a plot that is not drawn yet, without the length of turned labels. */
export function expectedHeight({ x, strips }: Plot): number {
  const all = strips.map(
    ({ title, height, y }) =>
      (title === '' ? 0 : 20) + (y.scale.kind === 'names' ? 0 : 4) + height,
  );
  const between = 12 * Math.max(0, strips.length - 1);
  const below = LABELS_PX + (x.title === '' ? 0 : TITLE_PX);
  return all.reduce((sum, height) => sum + height, 12 + between + below);
}

/** Draws the plot; `head` is room above it in pixels. */
export function drawPlot(
  plot: Plot,
  width: number,
  theme: Theme,
  hidden: Set<string>,
  head = 0,
): Drawn {
  const shown = seriesOf(plot).filter((series) => !hidden.has(series.name));
  const all = seriesOf(plot);
  const most = width * NAMES_SHARE;
  const longest = Math.max(0, ...plot.strips.flatMap(({ marks }) => marks.map(labelWidth)));
  const crowded = Math.max(
    0,
    ...plot.strips.map(({ marks }) => marks.filter((mark) => mark.kind === 'line').length),
  );
  const labelled =
    plot.labels &&
    all.length > 0 &&
    crowded <= LABELS_MOST &&
    width >= LABELS_FROM_PX &&
    longest + 24 <= width * LABELS_SHARE &&
    (!plot.nearLabels || plot.strips.every(areNear));
  const edge = plot.x.scale.kind === 'names' ? 8 : textWidth(plot.x.scale.ticks.at(-1)?.text) / 2;
  const ends = Math.max(
    0,
    ...plot.strips.flatMap(({ marks }) => marks.flatMap((mark) => endTexts(mark))),
  );
  const right = width - Math.max(10, edge + 4, labelled ? longest + 24 : 0, ends);
  const left = leftOf(plot, most);
  const x = (value: number) => left + place(plot.x.scale, value) * (right - left);
  const body = element('g', {});
  const unnamed: string[] = [];
  let top = head + 8;
  let first: { y: Drawn['y']; top: number } | undefined;
  let base = top;
  plot.strips.forEach((strip, index) => {
    if (strip.title !== '') {
      body.append(write(2, top + 10, capped(strip.title, width - 4), { fill: theme.muted }));
      top += 20;
    }
    const from = top + (strip.y.scale.kind === 'names' ? 0 : 4);
    const bottom = from + strip.height;
    const up = (value: number) => {
      const share = place(strip.y.scale, value);
      return strip.y.scale.down ? from + share * strip.height : bottom - share * strip.height;
    };
    first ??= { y: up, top: from };
    const at: Place = { theme, left, right, top: from, bottom, x, y: up, hidden };
    body.append(...verticalAxis(strip, at, most));
    const isLast = index + 1 === plot.strips.length;
    const { below, nodes } = horizontalAxis(plot, at, isLast);
    body.append(...nodes, ...marksOf(strip, at, unnamed));
    if (labelled) body.append(...endLabels(strip, at, shown.length > 1 || plot.strips.length > 1));
    top = bottom + below + (isLast ? 0 : 8);
    base = bottom;
  });
  const height = Math.ceil(top + 4);
  const svg = element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      'font-family': 'system-ui, sans-serif',
      'font-size': FONT_PX,
    },
    body,
  ) as SVGSVGElement;
  return {
    svg,
    width,
    height,
    labelled,
    unnamed: [...new Set(unnamed)],
    x,
    y: first?.y ?? (() => 0),
    top: first?.top ?? 0,
    bottom: base,
  };
}

function marksOf(strip: Strip, at: Place, unnamed: string[]): Node[] {
  const bars = strip.marks.filter(
    (mark): mark is Bars => mark.kind === 'bars' && !at.hidden.has(mark.name),
  );
  const hasNames = strip.marks.some((mark) => mark.kind === 'moment' && mark.isNamed);
  const least = hasNames ? at.top + LINE_PX : -Infinity;
  const names: RuleNames = { least, taken: [], unnamed };
  return strip.marks.flatMap((mark): Node[] => {
    if ('name' in mark && at.hidden.has(mark.name)) return [];
    const color = 'slot' in mark ? colorOf(at.theme, mark.slot) : at.theme.text;
    switch (mark.kind) {
      case 'line':
        return lineNodes(mark, color, at, linesBeneath(strip, mark, at.hidden));
      case 'band':
        return mark.points.length < 2 ? [] : [bandNode(mark.points, color, mark.opacity, at)];
      case 'whiskers':
        return mark.points.map(([x, low, high]) =>
          whisker(at.x(x), at.y(low), at.y(high), color, false),
        );
      case 'bars':
        return barNodes(mark, bars.indexOf(mark), bars.length, at);
      case 'cells':
        return mark.cells.flatMap((cell) => cellNodes(cell, at));
      case 'rule':
        return ruleNodes(mark.value, mark.text, at, names);
      case 'span':
        return [spanNode(mark.from, mark.to, at)];
      case 'moment':
        return [
          element(
            'path',
            {
              d: `M${round(at.x(mark.at))} ${round(at.top)}V${round(at.bottom)}`,
              stroke: at.theme.muted,
              'stroke-dasharray': '1 3',
              'stroke-width': 1.5,
            },
            titled(mark.text),
          ),
          ...(mark.isNamed ? [momentName(mark.at, mark.text, at)] : []),
        ];
    }
  });
}

/** Name of a moment at the top of its line, on the side with more room. */
function momentName(moment: number, words: string, at: Place): SVGElement {
  const x = at.x(moment);
  const isLeft = x - at.left > at.right - x;
  const room = (isLeft ? x - at.left : at.right - x) - 8;
  return write(x + (isLeft ? -5 : 5), at.top + 11, capped(words, room), {
    class: 'moment',
    fill: at.theme.text,
    'text-anchor': isLeft ? 'end' : 'start',
    stroke: at.theme.background,
    'stroke-width': 3,
    'paint-order': 'stroke',
  });
}

function titled(words: string): SVGElement {
  const made = element('title', {});
  made.textContent = words;
  return made;
}

/**
 * A line on top of `beneath` others that it coincides with is thinner, so that all of them are
 * visible.
 */
function lineNodes(line: Line, color: string, at: Place, beneath: number): Node[] {
  const thinner = 1 + beneath;
  let d = '';
  let isDown = false;
  let before = 0;
  for (const { x, y } of line.points) {
    if (y === null) {
      isDown = false;
      continue;
    }
    const [left, top] = [round(at.x(x)), round(at.y(y))];
    if (!isDown) d += `M${left} ${top}`;
    else if (line.step) d += top === before ? `H${left}` : `H${left}V${top}`;
    else d += `L${left} ${top}`;
    isDown = true;
    before = top;
  }
  if (d === '') return [];
  const nodes: Node[] = [];
  if (line.filled) {
    const [first, last] = [line.points[0], line.points.at(-1)];
    const base = round(at.bottom);
    const closed = `${d}H${round(at.x(last?.x ?? 0))}V${base}H${round(at.x(first?.x ?? 0))}Z`;
    nodes.push(path(closed, { fill: color, 'fill-opacity': 0.1 }));
  }
  nodes.push(
    path(d, {
      class: 'line',
      stroke: color,
      'stroke-width': round(2 / thinner),
      'stroke-dasharray': dashOf(line.slot, line.dash),
      'stroke-linejoin': 'round',
    }),
  );
  if (line.dots)
    for (const { x, y, hollow } of line.points)
      if (y !== null)
        nodes.push(
          element('circle', {
            cx: round(at.x(x)),
            cy: round(at.y(y)),
            r: round(3.5 / Math.sqrt(thinner)),
            fill: hollow ? at.theme.background : color,
            stroke: color,
            'stroke-width': 1.5,
          }),
        );
  return nodes;
}

function bandNode(
  points: [number, number, number][],
  fill: string,
  opacity: number,
  at: Place,
): Node {
  const line = (index: 1 | 2) =>
    points.map((point) => `${round(at.x(point[0]))} ${round(at.y(point[index]))}`);
  const d = `M${[...line(2), ...line(1).reverse()].join('L')}Z`;
  return path(d, { fill, 'fill-opacity': opacity });
}

/** An interval with caps; `a` and `b` are its ends. */
function whisker(
  middle: number,
  a: number,
  b: number,
  stroke: string,
  lying: boolean,
  cap = 4,
): Node {
  const [m, from, to] = [round(middle), round(a), round(b)];
  const d = lying
    ? `M${from} ${m - cap}v${2 * cap}M${to} ${m - cap}v${2 * cap}M${from} ${m}H${to}`
    : `M${m - cap} ${from}h${2 * cap}M${m - cap} ${to}h${2 * cap}M${m} ${from}V${to}`;
  return path(d, { stroke, 'stroke-width': 1.3 });
}

function barNodes(mark: Bars, index: number, count: number, at: Place): Node[] {
  const [one, two] = mark.lying ? [at.y(0), at.y(1)] : [at.x(0), at.x(1)];
  const width = Math.min((Math.abs(two - one) * FILLED) / count, mark.lying ? 20 : 56);
  const inner = Math.max(1, width - Math.min(3, 0.15 * width));
  const nodes: Node[] = [];
  const base = mark.lying ? at.left : at.bottom;
  const along = (value: number) =>
    mark.lying ? Math.max(at.left, at.x(value)) : Math.min(at.bottom, at.y(value));
  for (const bar of mark.bars) {
    const middle = (mark.lying ? at.y(bar.at) : at.x(bar.at)) + (index - (count - 1) / 2) * width;
    const slot = bar.slot ?? mark.slot;
    const color = colorOf(at.theme, slot);
    const [end, side] = [along(bar.value), round(middle - inner / 2)];
    const length = round(Math.max(1, Math.abs(end - base)));
    const shape = mark.lying
      ? `M${base} ${side}h${length}v${round(inner)}h${-length}Z`
      : `M${side} ${round(base)}v${-length}h${round(inner)}v${length}Z`;
    nodes.push(
      path(
        shape,
        bar.predicted
          ? { class: 'bar', fill: at.theme.background, stroke: color, 'stroke-dasharray': '3 3' }
          : { class: 'bar', fill: color, ...lighter(slot, color) },
      ),
    );
    const cap = Math.min(4, width / 4);
    if (bar.between) {
      const [low, high] = bar.between.map(along) as [number, number];
      nodes.push(whisker(middle, low, high, at.theme.text, mark.lying, cap));
    }
    if (bar.limit !== null) nodes.push(...limitNodes(middle, width, along(bar.limit), at, mark));
    if (bar.text !== undefined) {
      const to = Math.max(end, bar.between ? along(bar.between[1]) : 0, ...limitEnd(bar, along));
      nodes.push(write(to + 7, middle + 4, bar.text, { fill: at.theme.text }));
    }
  }
  return nodes;
}

/** A colour that recurs is lighter, inside an outline of the colour. */
const lighter = (slot: number, stroke: string) =>
  opacityOf(slot) < 1 ? { 'fill-opacity': opacityOf(slot), stroke } : {};

const limitEnd = (bar: { limit: number | null }, along: (value: number) => number) =>
  bar.limit === null ? [] : [along(bar.limit)];

/** A promised limit across a bar. Its outline keeps it visible on any bar. */
function limitNodes(middle: number, width: number, end: number, at: Place, mark: Bars): Node[] {
  const from = round(middle - width / 2);
  const d = mark.lying
    ? `M${round(end)} ${from}v${round(width)}`
    : `M${from} ${round(end)}h${round(width)}`;
  return [
    path(d, { stroke: at.theme.background, 'stroke-width': 5 }),
    path(d, { class: 'limit', stroke: at.theme.text, 'stroke-width': 2 }),
  ];
}

/**
 * Colours of heat maps from low to high, and of their texts: one hue, legible in grey too. One
 * colour of texts is legible on all cells, so cells of almost equal values look alike.
 */
const HEAT = {
  light: { low: '#eef5fd', high: '#5b9fe3', ink: '#101820' },
  dark: { low: '#1d2b3d', high: '#2f6db0', ink: '#ffffff' },
} as const;

/** Size of texts in narrow cells, and the smallest legible one, in pixels. */
const SMALL_PX = 10;
const LEAST_PX = 7;

function cellNodes(cell: Cell, at: Place): Node[] {
  const [width, height] = [at.x(1) - at.x(0), Math.abs(at.y(1) - at.y(0))];
  const [x, y] = [at.x(cell.column), at.y(cell.row)];
  const { low, high, ink: heatInk } = HEAT[at.theme.dark ? 'dark' : 'light'];
  const channels = [1, 3, 5].map((start) => {
    const [from, to] = [low, high].map((color) => parseInt(color.slice(start, start + 2), 16));
    return Math.round((from ?? 0) + ((to ?? 0) - (from ?? 0)) * (cell.share ?? 0));
  });
  const fill = cell.share === null ? at.theme.faint : `rgb(${channels.join(', ')})`;
  const ink = cell.share === null ? at.theme.text : heatInk;
  // In a narrow cell, the unit stands below the number.
  const sizeOf = (words: string) => Math.min(FONT_PX, ((width - 4) / textWidth(words)) * FONT_PX);
  const isNarrow = sizeOf(cell.text) < SMALL_PX;
  const lines = isNarrow ? cell.text.split('\u00a0') : [cell.text];
  const most = lines.length > 1 ? SMALL_PX : FONT_PX;
  const size = Math.min(most, ...lines.map(sizeOf));
  const nodes: Node[] = [
    path(
      `M${round(x - width / 2 + 1)} ${round(y - height / 2 + 1)}` +
        `h${round(width - 2)}v${round(height - 2)}h${round(2 - width)}Z`,
      cell.predicted ? { fill, stroke: at.theme.line, 'stroke-dasharray': '3 3' } : { fill },
    ),
  ];
  // A number that would be too small to read is in the table and the tooltip only.
  if (size < LEAST_PX) return nodes;
  const texts = lines.map((words, index) =>
    write(x, y + 4 + (index - (lines.length - 1) / 2) * (SMALL_PX + 2), words, {
      fill: ink,
      'font-size': round(size),
      'text-anchor': 'middle',
    }),
  );
  return [...nodes, ...texts];
}

/** Names of the limits of a strip. */
interface RuleNames {
  /** Upper end of the room for names above their lines. */
  least: number;
  /** Upper and lower ends of the names. */
  taken: [number, number][];
  /** Names without room. */
  unnamed: string[];
}

/** Height of the name of a limit in pixels. */
const RULE_NAME_PX = 18;

/** A dashed limit. Its name stands above the line, or below it where it has no room above. */
function ruleNodes(value: number, words: string, at: Place, names: RuleNames): Node[] {
  const y = at.y(value);
  const line = path(`M${round(at.left)} ${round(y)}H${round(at.right)}`, {
    stroke: at.theme.text,
    'stroke-width': 1.2,
    'stroke-dasharray': '6 3',
  });
  const text = capped(words, at.right - at.left - 8);
  const tops = [
    ...(y - RULE_NAME_PX < names.least ? [] : [y - RULE_NAME_PX]),
    ...(y + RULE_NAME_PX > at.bottom ? [] : [y]),
  ];
  const isFree = (from: number) =>
    names.taken.every(([other, end]) => from >= end || from + RULE_NAME_PX <= other);
  const top = tops.find(isFree);
  if (top === undefined) {
    names.unnamed.push(words);
    return [line];
  }
  names.taken.push([top, top + RULE_NAME_PX]);
  const outlined = { stroke: at.theme.background, 'stroke-width': 3, 'paint-order': 'stroke' };
  const name = { class: 'rule', fill: at.theme.text, ...outlined };
  return [line, write(at.left + 6, top + 13, text, name)];
}

function spanNode(from: number, to: number, at: Place): Node {
  const [left, right] = [at.x(from), at.x(to)];
  return element('rect', {
    class: 'span',
    x: round(left),
    y: round(at.top),
    width: round(Math.max(0, right - left)),
    height: round(at.bottom - at.top),
    fill: at.theme.faint,
    'fill-opacity': 0.7,
  });
}

/** Room for texts at the ends of horizontal bars. */
function endTexts(mark: Mark): number[] {
  if (mark.kind !== 'bars') return [];
  return mark.bars.map((bar) => (bar.text === undefined ? 0 : textWidth(bar.text) + 16));
}

const labelWidth = (mark: Mark) => (mark.kind === 'line' ? textWidth(mark.label ?? mark.name) : 0);
