// Names of lines: beside the end of a line, or at the right edge of the chart. `spread`,
// `SHIFT_MOST_PX` in heights of a line and `linesBeneath` are those of
// crates/report/src/plot/end_labels.rs, and the places of names those of end_names.rs beside it.
// Charts of `plot` differ in three points: their lines are 17 pixels high, no name reaches below
// the chart, and names do not avoid moments.

import { colorOf, LINE_PX, path, round, write, type Place } from './elements';
import type { Line, LinePoint, Strip } from './plot';
import { place, type Scale } from './scales';
import { textWidth } from './text';

/**
 * A name that stands farther from the end of its line could belong to another line. Four lines that
 * end at one place have their names within this distance.
 */
const SHIFT_MOST_PX = 1.5 * LINE_PX + 0.5;

/** Lines coincide if their points are nearer than this share of the vertical axis. */
const COINCIDENCE_SHARE = 0.004;
/**
 * Width of the slanted part of the leader from a line to its name. The name of a line that ends
 * farther from the right edge stands beside its end, if it has room there.
 */
const SLANT_PX = 60;
/** Distance of a name from the end of its line, if it stands beside it. */
const BESIDE_PX = 9;

type Position = [x: number, y: number];

/** A line with its name. */
interface End {
  name: string;
  slot: number;
  /** Points that have values, and the corners of steps, in pixels. */
  points: Position[];
  /** End of the line. */
  x: number;
  y: number;
}

interface Label extends End {
  /** Height of the name. */
  at: number;
}

/** Names that touch each other. */
interface Group {
  /** Sum of the heights that the first name would have if each name was at its line. */
  sum: number;
  count: number;
}

type Pixels = Omit<Place, 'theme' | 'left' | 'right'>;

/** The shown lines that have points. */
function endsOf(strip: Strip, at: Pixels): End[] {
  return strip.marks.flatMap((mark) => {
    if (mark.kind !== 'line' || at.hidden.has(mark.name)) return [];
    const points: Position[] = [];
    for (const { x, y } of mark.points) {
      if (y === null) continue;
      const [left, top] = [at.x(x), at.y(y)];
      const before = points.at(-1);
      // A value of a step lasts until the next point.
      if (mark.step && before) points.push([left, before[1]]);
      points.push([left, top]);
    }
    const last = points.at(-1);
    if (!last) return [];
    const [x, y] = last;
    return [{ name: mark.label ?? mark.name, slot: mark.slot, points, x, y }];
  });
}

/** Names at the right edge from top to bottom. */
function labelsOf(ends: End[], at: Pixels): Label[] {
  const sorted = [...ends].sort((a, b) => a.y - b.y);
  const heights = sorted.map(({ y }) => y);
  const moved = spread(heights, at.top, at.bottom + 4);
  return sorted.map((end, index) => ({ ...end, at: moved[index] ?? end.y }));
}

/** Moves sorted heights apart. Names that touch each other are centred on their lines. */
function spread(heights: number[], top: number, bottom: number): number[] {
  const firstOf = ({ sum, count }: Group) =>
    Math.min(Math.max(sum / count, top), bottom - (count - 1) * LINE_PX);
  const groups: Group[] = [];
  for (const height of heights) {
    let group: Group = { sum: height, count: 1 };
    for (;;) {
      const above = groups.at(-1);
      if (!above || firstOf(above) + above.count * LINE_PX <= firstOf(group)) break;
      groups.pop();
      const sum = above.sum + group.sum - above.count * group.count * LINE_PX;
      group = { sum, count: above.count + group.count };
    }
    groups.push(group);
  }
  return groups.flatMap((group) =>
    Array.from({ length: group.count }, (_, index) => firstOf(group) + index * LINE_PX),
  );
}

/** Whether each name of a strip has room near the end of its line, hidden lines included. */
export function areNear(strip: Strip): boolean {
  const { height } = strip;
  const { scale } = strip.y;
  const share = (value: number) => (scale.down ? place(scale, value) : 1 - place(scale, value));
  const y = (value: number) => share(value) * height;
  const at = { top: 0, bottom: height, x: () => 0, y, hidden: new Set<string>() };
  const labels = labelsOf(endsOf(strip, at), at);
  return labels.every((label) => Math.abs(label.at - label.y) <= SHIFT_MOST_PX);
}

/** Names of lines. Those at the right edge have a key in the colour of the line, and a leader. */
export function endLabels(strip: Strip, at: Place, needed: boolean): Node[] {
  if (!needed) return [];
  const ends = endsOf(strip, at);
  const beside = ends.filter((end) => hasRoomBeside(end, ends, strip, at));
  const atEdge = labelsOf(
    ends.filter((end) => !beside.includes(end)),
    at,
  );
  return [
    ...beside.map(({ name, x, y }) =>
      write(x + BESIDE_PX, y + 4, name, {
        fill: at.theme.text,
        stroke: at.theme.background,
        'stroke-width': 3,
        'paint-order': 'stroke',
      }),
    ),
    ...atEdge.flatMap(({ name, slot, x, y, at: top }) => {
      // A slanted line across the chart would look like data.
      const bend = Math.max(x, at.right - SLANT_PX);
      const line = `M${round(x)} ${round(y)}H${round(bend)}L${round(at.right + 8)} ${round(top)}h2`;
      return [
        path(line, { class: 'leader', stroke: at.theme.line, 'stroke-width': 0.8 }),
        path(`M${round(at.right + 11)} ${round(top)}h8`, {
          class: 'key',
          stroke: colorOf(at.theme, slot),
          'stroke-width': 3,
        }),
        write(at.right + 22, top + 4, name, { fill: at.theme.text }),
      ];
    }),
  ];
}

/** Whether a name beside the end of its line touches no other line, leader, limit or moment. */
function hasRoomBeside(end: End, ends: End[], strip: Strip, at: Place): boolean {
  const right = end.x + BESIDE_PX + textWidth(end.name);
  if (right > at.right - SLANT_PX) return false;
  const isFar = (y: number) => Math.abs(y - end.y) >= 2 * LINE_PX;
  const isFree = strip.marks.every((mark) => {
    if (mark.kind === 'rule') return isFar(at.y(mark.value));
    if (mark.kind !== 'moment') return true;
    const x = at.x(mark.at);
    return (x < end.x || x > right) && (!mark.isNamed || isFar(at.top));
  });
  return isFree && ends.every((other) => other === end || isClear(other, end, right));
}

/** Whether a line, and the leader from its end, stay away from a name that reaches to `right`. */
function isClear({ points, x, y }: End, end: End, right: number): boolean {
  const isAway = (height: number) => Math.abs(height - end.y) >= LINE_PX;
  const areAway = points.slice(1).every((to, index) => {
    const from = points[index] ?? to;
    if (to[0] < end.x || from[0] > right) return true;
    const height = (at: number) => {
      // A vertical part reaches its end at once.
      const width = Math.max(to[0] - from[0], 1e-9);
      const share = at < to[0] ? (Math.max(at, from[0]) - from[0]) / width : 1;
      return from[1] + share * (to[1] - from[1]);
    };
    const [a, b] = [height(end.x), height(right)];
    return isAway(a) && isAway(b) && a > end.y === b > end.y;
  });
  return areAway && (x > right || isAway(y));
}

/**
 * Number of shown lines that a line would hide, or that would hide it: it is drawn on top of them,
 * and thinner by that number.
 */
export function linesBeneath(strip: Strip, line: Line, hidden: Set<string>): number {
  const before = strip.marks.slice(0, strip.marks.indexOf(line));
  return before.filter(
    (mark) => mark.kind === 'line' && !hidden.has(mark.name) && coincide(mark, line, strip.y.scale),
  ).length;
}

/** Whether each point of one line is at a point of the other, and both end at the same place. */
function coincide(one: Line, other: Line, scale: Scale): boolean {
  const isNear = (a: number, b: number) =>
    Math.abs(place(scale, a) - place(scale, b)) <= COINCIDENCE_SHARE;
  const isAt = (a: LinePoint, b: LinePoint) =>
    a.x === b.x && (a.y === null || b.y === null ? a.y === b.y : isNear(a.y, b.y));
  const hides = (all: Line, some: Line) =>
    some.points.every((point) => all.points.some((known) => isAt(point, known)));
  const [a, b] = [one.points.at(-1), other.points.at(-1)];
  if (!a || !b || !isAt(a, b)) return false;
  return hides(one, other) || hides(other, one);
}
