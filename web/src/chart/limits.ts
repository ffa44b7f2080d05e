// Promised limits as lines in charts of measured values.

import type { Promised, Unit } from '../document';
import { quantity } from '../format';
import type { Rule } from './plot';

export interface Limit {
  /** Name, such as `promised read IOPS`. */
  name: string;
  value: number;
  unit: Unit;
}

/** Limits above this multiple of the measured maximum would flatten the chart: not drawn. */
const FAR = 4;

/** Distinct promised limits of these places, for a unit and directions. The highest come first. */
export function limitsOf(
  promises: Promised[],
  places: Set<string>,
  unit: Unit,
  directions: Set<string>,
): Limit[] {
  const found = new Map<string, Limit>();
  for (const promised of promises) {
    if (!places.has(promised.place)) continue;
    for (const row of promised.rows) {
      const [direction] = row.what.split(' ');
      // A promise without a direction applies to all directions together.
      const matters = ['read', 'write'].includes(direction ?? '')
        ? directions.has(direction ?? '')
        : true;
      if (row.unit !== unit || !matters) continue;
      const name = `promised ${row.what}`;
      found.set(`${name} ${row.promised}`, { name, value: row.promised, unit });
    }
  }
  return [...found.values()].sort((a, b) => b.value - a.value);
}

/** Limits that can be drawn beside values up to `most`. */
export function near(limits: Limit[], most: number): Limit[] {
  return limits.filter((limit) => limit.value <= FAR * most);
}

/** Lines across a chart. Equal limits share a line. */
export function limitLines(limits: Limit[]): Rule[] {
  const at = new Map<number, string[]>();
  for (const limit of limits) at.set(limit.value, [...(at.get(limit.value) ?? []), limit.name]);
  return [...at].map(([value, names]) => ({
    kind: 'rule',
    value,
    text: `${shared(names)}: ${quantity(value, limits[0]?.unit ?? 'count')}`,
  }));
}

/** Merges names: `promised read IOPS`, `promised write IOPS`: `promised read and write IOPS`. */
function shared(names: string[]): string {
  const words = names.map((name) => name.split(' '));
  const [first] = words;
  if (names.length < 2 || !first || words.some((each) => each.length !== 3 || each[2] !== first[2]))
    return names.join(', ');
  return `promised ${words.map((each) => each[1]).join(' and ')} ${first[2]}`;
}

/** The limits as text for summaries and tables. */
export function limitsInWords(limits: Limit[]): string {
  return limits
    .map(
      (limit) =>
        ` ${limit.name.charAt(0).toUpperCase()}${limit.name.slice(1)}: ${quantity(
          limit.value,
          limit.unit,
        )}.`,
    )
    .join('');
}
