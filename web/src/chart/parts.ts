// Texts that several charts have.

import type { Rate, Unit } from '../document';
import { quantity } from '../format';

export function withError(rate: Rate, unit: Unit): string {
  const mean = quantity(rate.mean, unit);
  return rate.error === null ? mean : `${mean} ± ${quantity(rate.error, unit)}`;
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
