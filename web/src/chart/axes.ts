// Axes of a plot: lines, and labels that do not overlap.

import { APART_PX, LINE_PX, path, round, write, type Place } from './elements';
import type { Plot, Strip } from './plot';
import type { Scale } from './scales';
import { capped, textWidth } from './text';

/** Room for the labels of values below a chart, and for the title below them. */
export const LABELS_PX = 22;
export const TITLE_PX = 20;
/** Longest label that is turned. */
const TURNED_PX = 110;

/** Room at the left: for the longest tick label of any strip, so that strips are aligned. */
export function leftOf(plot: Plot, most: number): number {
  const widths = plot.strips.flatMap(({ y }) => [
    y.title === '' ? 0 : 40,
    ...y.scale.ticks.map(
      ({ text }) => textWidth(text) + 12 + (y.title !== '' && y.scale.kind === 'names' ? 18 : 0),
    ),
  ]);
  return Math.min(Math.max(24, ...widths), Math.max(56, most));
}

export function verticalAxis(strip: Strip, at: Place, most: number): Node[] {
  const { scale, lines, title } = strip.y;
  const nodes: Node[] = [];
  const isNames = scale.kind === 'names';
  const turned = isNames && title !== '';
  if (title !== '' && isNames) {
    const middle = (at.top + at.bottom) / 2;
    nodes.push(
      write(12, middle, capped(title, at.bottom - at.top), {
        fill: at.theme.muted,
        'text-anchor': 'middle',
        transform: `rotate(-90 12 ${round(middle)})`,
      }),
    );
  }
  let last = Infinity;
  for (const { at: value, text } of scale.ticks) {
    const y = at.y(value);
    if (lines)
      nodes.push(
        path(`M${round(at.left)} ${round(y)}H${round(at.right)}`, { stroke: at.theme.faint }),
      );
    if (!isNames && last - y < LINE_PX) continue;
    last = isNames ? Infinity : y;
    const room = Math.min(most, at.left - 8 - (turned ? 18 : 0));
    nodes.push(
      write(at.left - 7, y + 4, capped(text, room), {
        fill: isNames ? at.theme.text : at.theme.muted,
        'text-anchor': 'end',
      }),
    );
  }
  return nodes;
}

/** Ticks with labels that do not overlap, and the title below the last strip. */
export function horizontalAxis(
  plot: Plot,
  at: Place,
  isLast: boolean,
): { below: number; nodes: Node[] } {
  const { scale, title, lines } = plot.x;
  const nodes: Node[] = [
    path(`M${round(at.left)} ${round(at.bottom)}H${round(at.right)}`, { stroke: at.theme.line }),
  ];
  if (lines)
    for (const { at: value } of scale.ticks)
      nodes.push(
        path(`M${round(at.x(value))} ${round(at.top)}V${round(at.bottom)}`, {
          stroke: at.theme.faint,
        }),
      );
  if (!isLast) return { below: 4, nodes };
  const labels = isTurned(scale, at) ? turnedLabels(scale, at) : tickLabels(scale, at);
  nodes.push(...labels.nodes);
  if (title === '') return { below: labels.below, nodes };
  const room = at.right - at.left + APART_PX;
  nodes.push(
    write((at.left + at.right) / 2, at.bottom + labels.below + 14, capped(title, room), {
      fill: at.theme.muted,
      'text-anchor': 'middle',
    }),
  );
  return { below: labels.below + TITLE_PX, nodes };
}

interface Labels {
  /** Room below the axis. */
  below: number;
  nodes: Node[];
}

/** Distance between two values of an axis with names. */
function stepOf(scale: Scale, at: Place): number {
  return scale.ticks.length > 1 ? Math.abs(at.x(1) - at.x(0)) : at.right - at.left;
}

/** Whether a name is longer than its place below the axis. */
function isTurned(scale: Scale, at: Place): boolean {
  if (scale.kind !== 'names' || scale.ticks.length < 2) return false;
  const room = stepOf(scale, at) - APART_PX;
  return scale.ticks.some(({ text }) => textWidth(text) > room);
}

/** Names that stand upright, from bottom to top. */
function turnedLabels(scale: Scale, at: Place): Labels {
  const nodes: Node[] = [];
  const top = round(at.bottom + 9);
  let longest = 0;
  let reached = -Infinity;
  for (const { at: value, text } of scale.ticks) {
    const x = round(at.x(value) + 4);
    if (x < reached + LINE_PX) continue;
    reached = x;
    const words = capped(text, TURNED_PX);
    longest = Math.max(longest, textWidth(words));
    nodes.push(
      path(`M${round(at.x(value))} ${round(at.bottom)}v4`, { stroke: at.theme.line }),
      write(x, top, words, {
        fill: at.theme.text,
        'text-anchor': 'end',
        transform: `rotate(-90 ${x} ${top})`,
      }),
    );
  }
  return { below: Math.ceil(longest) + 14, nodes };
}

function tickLabels(scale: Scale, at: Place): Labels {
  const nodes: Node[] = [];
  const isNames = scale.kind === 'names';
  const step = stepOf(scale, at);
  const text = (words: string) => (isNames ? capped(words, Math.max(28, step - APART_PX)) : words);
  // The last label is the most useful one: others make room for it.
  const ends = scale.ticks.map(({ at: value, text: words }) => {
    const half = textWidth(text(words)) / 2;
    return { value, words: text(words), from: at.x(value) - half, to: at.x(value) + half };
  });
  const last = ends.at(-1);
  let reached = -Infinity;
  for (const label of ends) {
    if (label.from < reached + APART_PX) continue;
    if (last && label !== last && label.to + APART_PX > last.from) continue;
    reached = label.to;
    nodes.push(
      path(`M${round(at.x(label.value))} ${round(at.bottom)}v4`, { stroke: at.theme.line }),
      write(at.x(label.value), at.bottom + 17, label.words, {
        fill: isNames ? at.theme.text : at.theme.muted,
        'text-anchor': 'middle',
      }),
    );
  }
  return { below: LABELS_PX, nodes };
}
