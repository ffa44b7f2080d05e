// Promised limits as lines in charts of what was measured.

import type { Promised, Unit } from '../document';
import { quantity } from '../format';
import type { Theme } from '../theme';
import type { Option } from './parts';

export interface Limit {
  /** `promised read IOPS`. */
  name: string;
  value: number;
  unit: Unit;
}

/** A limit so far above what was measured would leave no room for it in the chart. */
const FAR = 4;

/** What was promised of these places for this unit and these directions, each once. */
export function limitsOf(promises: Promised[], places: Set<string>, unit: Unit, directions: Set<string>): Limit[] {
  const found = new Map<string, Limit>();
  for (const promised of promises) {
    if (!places.has(promised.place)) continue;
    for (const row of promised.rows) {
      const [direction] = row.what.split(' ');
      // What has no direction is of all together.
      const matters = ['read', 'write'].includes(direction ?? '') ? directions.has(direction ?? '') : true;
      if (row.unit !== unit || !matters) continue;
      const name = `promised ${row.what}`;
      found.set(`${name} ${row.promised}`, { name, value: row.promised, unit });
    }
  }
  return [...found.values()];
}

/** Those that can be drawn beside values of up to `most`. */
export function near(limits: Limit[], most: number): Limit[] {
  return limits.filter((limit) => limit.value <= FAR * most);
}

/** A series without points that draws the lines. Equal limits share one. */
export function limitLines(theme: Theme, limits: Limit[], more: Option = {}): Option[] {
  if (limits.length === 0) return [];
  const at = new Map<number, string[]>();
  for (const limit of limits) at.set(limit.value, [...(at.get(limit.value) ?? []), limit.name]);
  const data = [...at].map(([value, names]) => ({ yAxis: value, name: `${shared(names)}: ${quantity(value, limits[0]?.unit ?? 'count')}` }));
  return [
    {
      type: 'line',
      name: 'promised',
      data: [],
      silent: true,
      tooltip: { show: false },
      markLine: {
        silent: true,
        symbol: 'none',
        lineStyle: { color: theme.text, type: [6, 3], width: 1.2 },
        label: { position: 'insideEndTop', color: theme.text, fontSize: 11, formatter: ({ name }: { name: string }) => name },
        data,
      },
      ...more,
    },
  ];
}

/** `promised read IOPS`, `promised write IOPS`: `promised read and write IOPS`. */
function shared(names: string[]): string {
  const words = names.map((name) => name.split(' '));
  const [first] = words;
  if (names.length < 2 || !first || words.some((each) => each.length !== 3 || each[2] !== first[2])) return names.join(', ');
  return `promised ${words.map((each) => each[1]).join(' and ')} ${first[2]}`;
}

/** The limits in words, for summaries and tables. */
export function limitsInWords(limits: Limit[]): string {
  return limits.map((limit) => ` ${limit.name.charAt(0).toUpperCase()}${limit.name.slice(1)}: ${quantity(limit.value, limit.unit)}.`).join('');
}
