// Names at the right ends of lines. `spread` and `SHIFT_MOST_PX` in heights of a line are those of
// crates/report/src/plot/end_labels.rs. Charts of `plot` differ in three points: their lines are 17
// pixels high, no name reaches below the chart, and lines that coincide share a name.

import { colorOf, LINE_PX, path, round, write, type Place } from './elements';
import type { Strip } from './plot';
import { place } from './scales';

/**
 * A name that stands farther from the end of its line could belong to another line. Four lines that
 * end at one place have their names within this distance.
 */
const SHIFT_MOST_PX = 1.5 * LINE_PX + 0.5;

interface Label {
  name: string;
  slot: number;
  /** End of the line. */
  x: number;
  y: number;
  /** Height of the name. */
  at: number;
}

/** Names that touch each other. */
interface Group {
  /** Sum of the heights that the first name would have if each name was at its line. */
  sum: number;
  count: number;
}

/** Names of the lines from top to bottom. */
function labelsOf(strip: Strip, at: Omit<Place, 'theme' | 'left' | 'right'>): Label[] {
  const ends = strip.marks
    .flatMap((mark) => {
      if (mark.kind !== 'line' || at.hidden.has(mark.name)) return [];
      const last = mark.points.findLast((point) => point.y !== null);
      if (!last) return [];
      const [x, y] = [at.x(last.x), at.y(last.y ?? 0)];
      return [{ name: mark.label ?? mark.name, slot: mark.slot, x, y }];
    })
    .sort((a, b) => a.y - b.y);
  const heights = ends.map(({ y }) => y);
  const moved = spread(heights, at.top, at.bottom + 4);
  return ends.map((end, index) => ({ ...end, at: moved[index] ?? end.y }));
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
  return labelsOf(strip, at).every((label) => Math.abs(label.at - label.y) <= SHIFT_MOST_PX);
}

/** Names at the right ends of lines, each with a leader from its line. */
export function endLabels(strip: Strip, at: Place, needed: boolean): Node[] {
  if (!needed) return [];
  return labelsOf(strip, at).flatMap(({ name, slot, x, y, at: top }) => [
    path(`M${round(x + 4)} ${round(y)}L${round(at.right + 12)} ${round(top)}h6`, {
      class: 'leader',
      stroke: colorOf(at.theme, slot),
      'stroke-width': 1,
    }),
    write(at.right + 22, top + 4, name, { fill: at.theme.text }),
  ]);
}
