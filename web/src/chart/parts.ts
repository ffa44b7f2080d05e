// Texts that several charts have.

import type { Rate, Unit } from '../document';
import { withInterval } from '../digits';
import { quantity } from '../format';

/** A measured figure with its interval: `93.4k ±1.2k`; `~3.1k` if the interval is not known. */
export function withError(rate: Rate, unit: Unit): string {
  return withInterval(rate.mean, rate.error, unit);
}

/** A figure of a grid. If its interval is not known, it is `shown`, as the program writes it. */
export function inGrid(
  rate: Rate,
  unit: Unit,
  { shown, predicted }: { shown: string | null; predicted: boolean },
): string {
  const isKnown = rate.error !== null && rate.error < rate.mean;
  const exact = rate.error === null ? quantity(rate.mean, unit) : withError(rate, unit);
  const words = isKnown ? exact : (shown ?? exact);
  // The text of the program has parentheses for that.
  return predicted && !words.startsWith('(') ? `${words} (predicted)` : words;
}

/** A value with the bounds of its interval, which may lie at different distances. */
export function withBounds(value: number, between: [number, number] | null, unit: Unit): string {
  const shown = quantity(value, unit);
  if (between === null) return shown;
  return `${shown} (${quantity(between[0], unit)} to ${quantity(between[1], unit)})`;
}

/** Bounds of an interval; a rate is never negative. */
export function bounds(rate: Rate): [number, number] | null {
  return rate.error === null ? null : [Math.max(0, rate.mean - rate.error), rate.mean + rate.error];
}

/** Highest end of these rates. */
export function highest(rates: Rate[]): number {
  return Math.max(0, ...rates.map((rate) => rate.mean + (rate.error ?? 0)));
}
